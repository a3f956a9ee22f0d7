package sbpl

import "strings"

// operations are the names that profiles may use, each under the wildcard that
// covers it. The set is what published profiles of macOS 14 to 26 and the
// published lists of operation names have in common; a name outside it is
// refused, as the compiler refuses it.
var operations = map[string]string{"default": ""}

func init() {
	for _, group := range []struct {
		parent string
		names  string
	}{
		{"default", "file* network* process* mach* ipc* sysctl* system* iokit* nvram* signal pseudo-tty " +
			"appleevent-send lsopen job-creation user-preference* managed-preference* distributed-notification-post " +
			"darwin-notification-post device* dynamic-code-generation generic-issue-extension hid-control " +
			"load-unsigned-code qtn* socket* syscall* boot-arg-set fs-snapshot* mac-policy* authorization-right-obtain"},
		{"file*", "file-read* file-write* file-chroot file-clone file-ioctl file-issue-extension file-link " +
			"file-map-executable file-mknod file-mount file-mount-update file-revoke file-search file-test-existence file-unmount"},
		{"file-read*", "file-read-data file-read-metadata file-read-xattr"},
		{"file-write*", "file-write-acl file-write-create file-write-data file-write-flags file-write-mode " +
			"file-write-mount file-write-owner file-write-setugid file-write-times file-write-umount file-write-unlink file-write-xattr"},
		{"network*", "network-inbound network-bind network-outbound"},
		{"process*", "process-fork process-exec* process-info* process-codesigning*"},
		{"process-exec*", "process-exec process-exec-interpreter process-exec-update-label"},
		{"process-info*", "process-info-codesignature process-info-dirtycontrol process-info-ledger process-info-listpids " +
			"process-info-pidinfo process-info-pidfdinfo process-info-pidfileportinfo process-info-rusage process-info-setcontrol"},
		{"mach*", "mach-bootstrap mach-cross-domain-lookup mach-derive-port mach-host* mach-issue-extension mach-lookup " +
			"mach-per-user-lookup mach-priv* mach-register mach-task*"},
		{"mach-host*", "mach-host-exception-port-set mach-host-special-port-set"},
		{"mach-priv*", "mach-priv-host-port mach-priv-task-port"},
		{"mach-task*", "mach-task-name mach-task-read mach-task-inspect mach-task-special-port*"},
		{"ipc*", "ipc-posix* ipc-sysv*"},
		{"ipc-posix*", "ipc-posix-issue-extension ipc-posix-sem* ipc-posix-shm*"},
		{"ipc-posix-sem*", "ipc-posix-sem ipc-posix-sem-create ipc-posix-sem-open ipc-posix-sem-post ipc-posix-sem-unlink ipc-posix-sem-wait"},
		{"ipc-posix-shm*", "ipc-posix-shm ipc-posix-shm-read* ipc-posix-shm-write*"},
		{"ipc-posix-shm-read*", "ipc-posix-shm-read-data ipc-posix-shm-read-metadata"},
		{"ipc-posix-shm-write*", "ipc-posix-shm-write-create ipc-posix-shm-write-data ipc-posix-shm-write-unlink"},
		{"ipc-sysv*", "ipc-sysv-msg ipc-sysv-sem ipc-sysv-shm"},
		{"sysctl*", "sysctl-read sysctl-write"},
		{"system*", "system-acct system-audit system-automount system-chud system-debug system-fcntl system-fsctl system-info " +
			"system-kas-info system-kext* system-lcid system-mac-label system-mac-syscall system-memorystatus-control " +
			"system-necp-client-action system-nfssvc system-package-check system-pathconf system-privilege system-reboot " +
			"system-sched system-set-time system-socket system-suspend-resume system-swap system-write-bootstrap"},
		{"system-kext*", "system-kext-load system-kext-unload system-kext-query"},
		{"iokit*", "iokit-get-properties iokit-issue-extension iokit-open* iokit-set-properties"},
		{"iokit-open*", "iokit-open iokit-open-service iokit-open-user-client"},
		{"nvram*", "nvram-delete nvram-get nvram-set"},
		{"user-preference*", "user-preference-read user-preference-write"},
		{"managed-preference*", "managed-preference-read"},
		{"device*", "device-camera device-microphone"},
		{"qtn*", "qtn-user qtn-download qtn-sandbox"},
		{"socket*", "socket-ioctl socket-option*"},
		{"socket-option*", "socket-option-get socket-option-set"},
		{"syscall*", "syscall-unix syscall-mach syscall-mig"},
	} {
		for _, name := range strings.Fields(group.names) {
			operations[name] = group.parent
		}
	}
}

// lineage is the operation, the wildcards above it and "default", most specific
// first.
func lineage(op string) []string {
	var all []string
	for op != "" {
		all = append(all, op)
		op = operations[op]
	}
	return all
}

// IsOperation reports whether the compiler knows the operation.
func IsOperation(op string) bool {
	_, ok := operations[op]
	return ok
}
