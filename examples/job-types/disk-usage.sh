#!/usr/bin/env bash
# Measures a file system every second: ./disk-usage.sh -- <path> <limit in per cent> <how often>
set -euo pipefail
[ "$1" = -- ] && shift
path=$1 limit=$2 samples=$3

progress() { printf '{"progress": %s, "message": "%s"}\n' "$1" "$2" >> "$HOLDFAST_EVENTS"; }

# What a command prints becomes the log of its job.
echo "Measuring $path"
progress 10 'file systems'
df -hP > "$HOLDFAST_ARTIFACTS/file-systems.txt"

for ((n = 1; n <= samples; n++)); do
  ((n == 1)) || sleep 1
  used=$(df -P -- "$path" | awk 'NR == 2 { sub("%", "", $5); print $5 }')
  echo "$used % are used"
  progress $((10 + 50 * n / samples)) "$n of $samples"
done

# Quoted values come from the payload: a script never builds JSON or commands of them by itself.
perl -MJSON::PP -e 'print encode_json({ path => $ARGV[0], usedPercent => $ARGV[1] + 0 })' \
  "$path" "$used" > "$HOLDFAST_RESULT"
progress 100 'done'
[ "$used" -le "$limit" ] || exit 2
