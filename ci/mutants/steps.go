package main

// steps are what a launch does beside the words that it gives to other programs:
// in which order, what it waits for, what it does not hand on and what it cleans
// up.
var steps = []step{
	// The record.
	{"record-or-nothing", "launcher/launch.go", `l.record(audit.Launch, ""); err != nil {`, `l.record(audit.Launch, ""); err != nil && false {`,
		[]string{"log-unwritable"}},
	{"record-launches", "launcher/launch.go", `if err := l.record(audit.Launch, ""); err != nil {`, `if err := error(nil); err != nil {`,
		[]string{"audit-launch"}},
	{"record-first", "launcher/launch.go", "if err := l.record(audit.Launch, \"\"); err != nil {\n\t\treturn 0, within(err, r.Env)\n\t}", `defer l.record(audit.Launch, "")`,
		[]string{"log-unwritable"}},
	{"record-refusals", "launcher/launch.go", `if recorded(err) {`, `if recorded(err) && false {`, []string{"audit-launch"}},
	{"record-failures", "launcher/launch.go", "// The launch line is already written; this one says that it came to nothing.\n\t\treturn 0, errors.Join(err, l.record(audit.Block, err.Error()))",
		`return 0, err`, []string{"no-address-aborts"}},
	{"record-masked", "launcher/launch.go", `o.Mask = l.Masks.String`, `o.Mask = nil`, []string{"audit-launch"}},
	{"record-synced", "launcher/audit/audit.go", `if err := dataSync(s.log); err != nil {`, `if err := error(nil); err != nil {`, []string{"./launcher/audit TestFailedSync"}},
	{"record-locked", "launcher/audit/store.go", `lock(f, syscall.LOCK_EX); err != nil {`, `error(nil); err != nil {`, []string{"./launcher/audit TestManyAtOnce|TestLockHeld"}},

	// Before there is a box.
	{"inspect", "launcher/launch.go", "Env:      env,\n\t}); err != nil {", "Env:      env,\n\t}); err != nil && false {", []string{"curl-blocked"}},
	{"environment", "launcher/launch.go", `env, dropped := p.Environment(r.Env)`, `env, dropped := r.Env, []policy.Dropped(nil)`, []string{"env-dropped"}},
	{"find-programs", "launcher/policy/load.go", `p.Programs = locate(p.DenyExec, p.programDirs(o.Env))`, `_ = locate(p.DenyExec, p.programDirs(o.Env))`, []string{"exec-denied"}},
	{"hide-own", "backends/bubblewrap/bubblewrap.go", "\tw.hideManaged()\n", "", []string{"audit-launch"}},

	{"input-no-directory", "launcher/launch.go", `} else if directory(in) {`, `} else if directory(in) && false {`, []string{"run-streams", "escape-sockets"}},

	{"input-poured", "launcher/relay.go", `if err == nil && given != nil {`, `if err == nil && given != nil && false {`, []string{"escape-files"}},
	{"input-position", "launcher/input_linux.go", "\t\ti.from.Seek(i.start+i.wrote-int64(left), io.SeekStart)\n", "\t\t_ = left\n", []string{"run-streams"}},

	// Ways round what is mounted.
	{"no-bare-repository", "backends/bubblewrap/waysout.go", "\t\t\tw.unbare(t.path)\n", "", []string{"escape-project"}},
	{"pins-between-trees", "backends/bubblewrap/layout.go", `t.path == dir && l.at(filepath.Dir(dir)).kind != writable {`, `t.path == dir {`, []string{"escape-project"}},
	{"links-in-hooks", "backends/bubblewrap/waysout.go", "\t\t\tw.linksIn(path, why, 0)\n", "", []string{"escape-project"}},
	{"each-name-denied", "backends/bubblewrap/trees.go", `range append(w.twins(real), real) {`, `range []string{real} {`, []string{"./backends/bubblewrap TestPlanHidesUnderEachName"}},
	{"each-name-hidden", "backends/bubblewrap/trees.go", `range w.twins(dir) {`, `range []string(nil) {`, []string{"./backends/bubblewrap TestPlanHidesUnderEachName"}},
	{"own-file", "backends/bubblewrap/waysout.go", `w.guard(self, "kgate itself", false)`, `_ = self`, []string{"./backends/bubblewrap TestPlanTellsOfWhatAMountCannotKeep"}},

	// What comes back.
	{"mask", "launcher/relay.go", `s.wrote(s.mask.Write(buf[:n]))`, `s.wrote(s.to.Write(buf[:n]))`, []string{"mask-output"}},
	{"mask-end", "launcher/relay.go", "\ts.wrote(0, s.mask.Close())\n", "", []string{"mask-output", "run-streams"}},

	// The box's processes.
	{"close-on-exec", "backends/bubblewrap/start_linux.go", "\tcloseOnExec()\n", "\t_ = closeOnExec\n", []string{"./backends/bubblewrap TestDescriptors"}},
	{"own-session", "backends/bubblewrap/start_linux.go", `Setsid: true, Pdeathsig`, `Pdeathsig`, []string{"run-signals"}},
	{"release-held", "backends/bubblewrap/hold_linux.go", `files = append(files, release)`, `_ = release`, []string{"./backends/bubblewrap TestJanitorHoldsTheRelease"}},
	{"filter-first", "backends/bubblewrap/run_linux.go", "if failed == nil {\n", "if failed == nil || true {\n", []string{"no-address-aborts"}},
	{"filter-at-all", "backends/bubblewrap/run_linux.go", `filter, failed = p.attach(b, plan, o.Tools, pid)`, `_ = pid`, []string{"host-allowed"}},
	{"bwrap-gone", "backends/bubblewrap/run_linux.go", "syscall.Kill(-p.bwrap, syscall.SIGKILL)\n\treturn true", "return true", []string{"./backends/bubblewrap TestBwrapKilled"}},
	{"whole-box-gone", "backends/bubblewrap/run_linux.go", "\tp.waitInit()\n", "", []string{"./backends/bubblewrap TestWaitIsForTheWholeBox"}},
	{"arguments-at-once", "backends/bubblewrap/start_linux.go", `room(args, len(words)); err != nil {`, `error(nil); err != nil {`, []string{"./backends/bubblewrap TestArgumentsAreWrittenAtOnce"}},

	// What must not stay.
	{"janitor-ends-bwrap", "backends/bubblewrap/hold_linux.go", `[ -z "$box" ] || kill -KILL "-$box" 2>/dev/null`, `:`, []string{"./backends/bubblewrap TestJanitorEndsBwrap"}},
	{"janitor-waits", "backends/bubblewrap/hold_linux.go", "read -r _ <&3\n", "", []string{"./backends/bubblewrap TestJanitorWaits"}},
	{"janitor-removes", "backends/bubblewrap/hold_linux.go", `while [ $# -gt 2 ]; do`, `while false; do`, []string{"./backends/bubblewrap TestKilledAtAnyMoment$"}},
	{"janitor-locks", "backends/bubblewrap/hold_linux.go", ` && flock -n -x "$1"; then`, `; then`, []string{"./backends/bubblewrap TestJanitorWaits"}},
	{"on-record-first", "backends/bubblewrap/hold_linux.go", `if len(lines) > 0 {`, `if len(lines) > 0 && false {`, []string{"./backends/bubblewrap TestKilledAtAnyMoment$"}},
	{"launches-share", "backends/bubblewrap/hold_linux.go", `unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)`, `error(nil)`, []string{"./backends/bubblewrap TestLaunchesShare"}},
	{"others-left", "backends/bubblewrap/hold_linux.go", "\tsweepOthers(run)\n", "", []string{"./backends/bubblewrap TestLeftBehindByAll"}},

	{"spare-when-empty", "backends/bubblewrap/spare_linux.go", `if !pristine(s.dir, spare) {
				renameat2`, `if false {
				renameat2`, []string{"./backends/bubblewrap TestSparesAreOnlyEmptyOnes"}},
	{"spare-as-made", "backends/bubblewrap/spare_linux.go", `|| st.Mode&0o7022 != 0 `, ``, []string{"./backends/bubblewrap TestSparesAreOnlyEmptyOnes"}},
	{"spare-when-taken", "backends/bubblewrap/spare_linux.go", `if !pristine(s.dir, spare) {
			s.names`, `if false {
			s.names`, []string{"./backends/bubblewrap TestSparesAreOnlyEmptyOnes"}},
	{"watch-of-the-process", "backends/bubblewrap/keep_linux.go", `unix.F_SETOWN, os.Getpid()`, `unix.F_GETFD, 0`, []string{"./backends/bubblewrap TestWatchOutlivesItsThread"}},
	{"ending-box-asked-again", "backends/bubblewrap/keep_linux.go", `for range 2 {`, `for range 1 {`, []string{"./backends/bubblewrap TestEndingBoxIsNotUncovered"}},
	{"chains-removed", "backends/hostfilter/restore_linux.go", `if err := removeChains(family); err != nil {`, `if err := error(nil); err != nil {`, []string{"./backends/hostfilter TestChainsGoWithAFailure"}},
	{"held-where-planned", "backends/bubblewrap/astray_linux.go", `Resolve: unix.RESOLVE_NO_SYMLINKS`, `Resolve: 0`, []string{"./backends/bubblewrap TestHeldWhereItWasPlanned"}},
	{"held-step-by-step", "backends/bubblewrap/astray_linux.go", `unix.Openat(fd, name, flags, 0)`, `unix.Openat(fd, name, flags&^unix.O_NOFOLLOW, 0)`,
		[]string{"./backends/bubblewrap TestHeldWhereItWasPlanned"}},
	{"held-in-directory", "backends/bubblewrap/astray_linux.go", `err = mkdirat(dir, name, 0o755)`, `err = mkdirat(unix.AT_FDCWD, h.Path, 0o755)`,
		[]string{"./backends/bubblewrap TestHeldWhereItWasPlanned"}},
	{"janitor-in-place", "backends/bubblewrap/hold_linux.go", "[ \"$(pwd -P; echo .)\" = \"$3\n.\" ] && ", "", []string{"./backends/bubblewrap TestHeldWhereItWasPlanned"}},
	{"mask-read-only", "backends/bubblewrap/layout.go", `, "--remount-ro", o.path)`, `)`, []string{"escape-files"}},
	{"line-taken-back", "launcher/audit/audit.go", `if cut := s.log.Truncate(s.size); cut != nil {`, `if cut := error(nil); cut != nil {`, []string{"./launcher/audit TestFullDisk", "log-full"}},

	// The filter's processes.
	{"filter-tied", "backends/hostfilter/child_linux.go", `Pdeathsig: syscall.SIGKILL, Setpgid: true`, `Setpgid: true`, []string{"./backends/hostfilter TestHelpersAreTied"}},
	{"gate-in-place", "backends/hostfilter/gate_linux.go", `g.orders.place(); err != nil {`, `g.orders.place(); err != nil && false {`, []string{"./backends/hostfilter TestNoFilterNoCommand"}},
	{"gate-proven", "backends/hostfilter/gate_linux.go", `proven <- g.prove()`, `proven <- nil`, []string{"./backends/hostfilter TestNoFilterNoCommand"}},
	{"device-ready", "backends/hostfilter/attach_linux.go", `n, _ := ready.Read(b[:]); n != 1 {`, `n, _ := ready.Read(b[:]); n != 1 && false {`, []string{"./backends/hostfilter TestNoFilterNoCommand"}},
	{"gate-ready", "backends/hostfilter/attach_linux.go", "\t<-f.gate.gone\n\tsettle(&Fault{RowEnter, f.gate.fault(\"before the filter was complete\"), \"\"})", "\t<-f.gate.gone\n\tsettle(nil)",
		[]string{"./backends/hostfilter TestNoFilterNoCommand|TestKilledAtAnyMoment"}},
	{"rules-before-device", "backends/hostfilter/gate_linux.go", "\tfilters, err := g.restore()\n\tif err != nil {\n\t\treturn err\n\t}\n", "\tfilters, err := g.restore()\n\t_ = err\n",
		[]string{"./backends/hostfilter TestNoFilterNoCommand"}},
	{"established-ours", "backends/hostfilter/rules.go", ` --ctstate ESTABLISHED --ctdir ORIGINAL`, ` --ctstate ESTABLISHED`, []string{"escape-network", "./backends/hostfilter TestScenes"}},
	{"loopback-to-itself", "backends/hostfilter/rules.go", `"-A OUTPUT -o lo -d %s -j ACCEPT", inside)`, `"-A OUTPUT -o lo -j ACCEPT%.0s", inside)`, []string{"escape-network", "./backends/hostfilter TestScenes"}},
	{"dot-in-a-label", "backends/hostfilter/list.go", "strings.Contains(name, `\\`)", `false`, []string{"escape-network", "./backends/hostfilter TestListPorts"}},
	{"gate-ports", "backends/hostfilter/upstream_linux.go", `if u.dialer.Control == nil {`, `if true {`, []string{"escape-network", "./backends/hostfilter TestScenes"}},
	{"loopback-of-the-machine", "backends/hostfilter/gate_linux.go", `g.names = newNames(g.config, g.orders.Own, `, `g.names = newNames(g.config, nil, `, []string{"lan-closed", "host-loopback-closed", "./backends/hostfilter TestScenes"}},
}
