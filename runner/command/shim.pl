# Runs one command, and ends everything that the command has started.
#
# It is in Perl because a process can only adopt the orphans of its descendants ("subreaper", prctl(2)) by a
# system call that Node and shells do not have; perl-base is part of every Debian, and starts in milliseconds.
#
# File descriptor 3 is a socket to the runner. The runner sends the command; the shim answers "started", "exit",
# "empty" (no process of the run is left) and "failed". When the runner closes the socket, or dies, everything is killed;
# and when it does not renew the lease of the attempt, because it is paused: another runner may begin the next attempt then.

use strict;
use warnings;
use Config;

use constant { PR_SET_PDEATHSIG => 1, PR_SET_CHILD_SUBREAPER => 36, WNOHANG => 1, SIGKILL => 9 };
use constant { KILL_SECONDS => 10, PAUSE_SECONDS => 0.003 };

# The numbers of prctl; without one, orphans that have left the group are found by their environment.
my %PRCTL = (
  x86_64 => 157, aarch64 => 167, arm => 172, i386 => 172, i486 => 172, i586 => 172, i686 => 172,
  riscv64 => 167, loongarch64 => 167, powerpc64le => 171, ppc64le => 171, s390x => 172,
);
my ($architecture) = $Config{archname} =~ /^(\w+)-linux/;
my $prctl = defined $architecture ? $PRCTL{$architecture} : undef;

# Signals to the group of the shim must not end it: it reports how the command has ended.
my @IGNORED = qw(HUP INT QUIT TERM USR1 USR2 PIPE ALRM TSTP TTIN TTOU);
$SIG{$_} = 'IGNORE' for @IGNORED;

open(my $runner, '+<&=', 3) or die "no socket to the runner: $!";
binmode $runner;

sub report { my ($text) = @_; syswrite($runner, "$text\n"); }

# "<length>\n", then fields that end with NUL: the folder, the number of arguments, arguments, variables. Returns them, and
# what follows.
sub receive {
  my ($received, $length) = ('', undef);
  while (1) {
    if (!defined $length && $received =~ s/^(\d+)\n//) { $length = $1; }
    return (substr($received, 0, $length), substr($received, $length))
      if defined $length && length($received) >= $length;
    my $count = sysread($runner, $received, 65536, length $received);
    return () if !$count;
  }
}

my ($request, $messages) = receive();
exit 0 if !defined $request;
my ($folder, $arguments, @rest) = split /\0/, $request, -1;
pop @rest;
my @argv = splice @rest, 0, $arguments;
my @variables = @rest;

my $adopts = defined $prctl && syscall($prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
my $shim = $$;

# The command closes its end when its program starts; until then signals would be lost.
pipe(my $started, my $starting) or die "no pipe: $!";
my $command = fork();
if (!defined $command) { report("failed cannot fork: $!"); exit 1; }
if ($command == 0) {
  setpgrp(0, 0);
  syscall($prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) if defined $prctl;
  exit 1 if getppid() != $shim;
  $SIG{$_} = 'DEFAULT' for @IGNORED;
  %ENV = map { my ($name, $value) = split /=/, $_, 2; ($name, $value) } @variables;
  if (!chdir $folder) { syswrite($starting, "cannot enter $folder: $!"); exit 1; }
  no warnings 'exec';
  exec { $argv[0] } @argv;
  syswrite($starting, "cannot execute $argv[0]: $!");
  exit 1;
}
close $starting;
# Both sides set the group: whichever comes first.
setpgrp($command, $command);

# The outputs belong to the command: they end with its processes.
open STDOUT, '>', '/dev/null';
open STDERR, '>', '/dev/null';

# Seconds since the start of the machine, also while it was suspended: the time of day can be set.
sub now {
  open(my $file, '<', '/proc/uptime') or return time;
  my ($seconds) = split ' ', <$file> // '';
  return $seconds // time;
}

# Waits until the runner has closed the socket, or has not renewed the lease with "lease <milliseconds>\n".
sub wait_for_runner {
  my $deadline;
  while (1) {
    while ($messages =~ s/^(\w+) (\d+)\n//) { $deadline = now() + $2 / 1000 if $1 eq 'lease'; }
    my $left = defined $deadline ? $deadline - now() : undef;
    if (defined $left && $left <= 0) { report('lost'); return; }
    my $readable = '';
    vec($readable, fileno($runner), 1) = 1;
    next if select($readable, undef, undef, $left) <= 0;
    my $count = sysread($runner, $messages, 512, length $messages);
    return if defined $count ? $count == 0 : !$!{EINTR};
  }
}

# A process of its own waits for the runner, so that the shim waits for one thing only: ends of processes.
my $watcher = fork();
if (defined $watcher && $watcher == 0) {
  wait_for_runner();
  # The shim does this, too, unless it was killed; whether it was cannot be known yet.
  kill KILL => -$command;
  exit 0;
}

my $failure = '';
1 while sysread($started, $failure, 4096, length $failure);
$failure =~ s/\n/ /g;
report($failure eq '' ? "started $command " . ($adopts ? 1 : 0) : "failed $failure");

# The ids of all descendants. Processes of other users can be among them, which cannot be killed.
sub descendants {
  opendir(my $processes, '/proc') or return;
  my %children;
  for my $id (grep { /^\d+$/ } readdir $processes) {
    open(my $file, '<', "/proc/$id/stat") or next;
    my $line = <$file>;
    # The name, in parentheses, can contain anything.
    next if !defined $line || $line !~ /^.*\)\s(\S)\s(\d+)/s;
    push @{ $children{$2} }, $id if $1 ne 'Z';
  }
  my @found = @{ $children{$$} // [] };
  for (my $i = 0; $i < @found; $i++) { push @found, @{ $children{ $found[$i] } // [] }; }
  return @found;
}

sub has_children {
  my $pid;
  1 while ($pid = waitpid(-1, WNOHANG)) > 0;
  return $pid != -1;
}

# Killing a process makes its children those of the shim, so this ends when the shim has none.
sub kill_all {
  my $until = time + KILL_SECONDS;
  while (1) {
    kill KILL => -$command;
    return if !has_children();
    kill KILL => $_ for descendants();
    return if !has_children();
    if (time > $until) { report('left ' . join ' ', descendants()); return; }
    select undef, undef, undef, PAUSE_SECONDS;
  }
}

# True if the watcher is the only child. A process that ends has handed its children over before it can be waited for, so
# then there are no other descendants either. Without adoption nothing is known of orphans.
sub is_alone {
  return 1 if !$adopts;
  if (open(my $file, '<', "/proc/self/task/$shim/children")) {
    return !grep { $_ != $watcher } split ' ', <$file> // '';
  }
  return !grep { $_ != $watcher } descendants();
}

if (!defined $watcher) { kill_all(); report('failed cannot fork'); exit 1; }

my ($has_exited, $is_empty) = (0, 0);
while ((my $pid = waitpid(-1, 0)) != -1) {
  if ($pid == $watcher) { kill_all(); last; }
  if ($pid == $command) {
    report('exit ' . ($? >> 8) . ' ' . ($? & 127));
    $has_exited = 1;
  }
  if ($has_exited && !$is_empty && is_alone()) {
    report('empty');
    $is_empty = 1;
  }
}

# A runner that was paused reads the reports later: a connection that is closed would lose them.
1 while sysread($runner, my $ignored, 512);
