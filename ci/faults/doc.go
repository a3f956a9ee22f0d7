// Faults breaks launches on purpose and looks at what is left of them.
//
//	go run ./ci/faults [-n N] [-only PATTERN] [-sample N] [-user NAME] [-kgate FILE] [-list] [-v]
//
// On the machine of a lab (package lab) it launches one command, with the
// network off and with a host list. The command tells that it runs, tries to
// read a file of the home directory and to reach a server that is not listed, and
// then waits. Meanwhile one thing goes wrong:
//
//   - kill: each process of a launch, whoever it is, gets SIGKILL at its n-th
//     system call, -n of them for each process, mode and kind of end. This
//     program traces the launch (ptrace(2)) from outside the box, so that a
//     point is a system call and not a moment.
//   - stop: the same with SIGSTOP, and SIGCONT after a while or never; never
//     is followed by a SIGTERM to kgate, which must end the launch, or by a
//     SIGKILL where what is stopped would have to act on the SIGTERM itself.
//   - full: the file system of ~/.kgate or of the project has no room, or no
//     room for one more file, at each size from nothing to enough.
//   - readonly: the log, its directory or the project cannot be written.
//   - nofile, nproc, memory: a limit of descriptors, processes or address space
//     from nothing to enough.
//   - resolver: the name servers fall silent before the launch or during it.
//
// After each of them: the server that is not listed has seen nothing and the
// home's file is unread; no process and no mount is left; home, project and
// ~/.kgate/run hold what they held, but for the log and the empty directories in
// ~/.kgate/spare; if the command ran, its launch line is in the log; `kgate log
// verify` finds the chain whole; a launch that came to nothing has said so and has
// a status other than 0 (but if it was kgate that got SIGKILL); and the next launch
// works and takes away what could not be taken away before.
//
// Each of these checks is shown first to fail for a launcher that has the
// defect: a shell script in kgate's place. The exit status is 1 when a check
// fails, or when one of those does not.
//
// It runs as the present user, root or not, or as root for -user. -sample tries
// N points taken at random, and half as many of those launchers; -list prints the points that there are.
package main
