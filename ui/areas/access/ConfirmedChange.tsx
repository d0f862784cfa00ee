import { useQueryClient } from '@tanstack/react-query';
import { ConfirmedButton, type ConfirmedButtonProps } from '../../parts/ConfirmedButton.tsx';

/** A button for what is asked about first, after which all pages of access are read again. */
export function ConfirmedChange(props: Omit<ConfirmedButtonProps, 'onSettled'>) {
  const client = useQueryClient();
  return (
    <ConfirmedButton
      {...props}
      onSettled={() => client.invalidateQueries({ queryKey: ['access'] })}
    />
  );
}
