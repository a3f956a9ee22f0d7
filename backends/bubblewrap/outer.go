package bubblewrap

import "strings"

// bwrap runs outside the box, so what the person's environment tells the dynamic
// linker and the C library to load is not for it: a build's own directory in
// LD_LIBRARY_PATH is nothing unusual, and a command in a box may write there. The
// command gets these variables all the same, from bwrap's arguments.

// loads says whether a variable names files that a program loads before it does
// anything else: ld.so(8), and those that glibc leaves out of setuid programs
// (sysdeps/generic/unsecvars.h of its source).
func loads(name string) bool {
	switch name {
	case "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH",
		"MALLOC_TRACE", "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR":
		return true
	}
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "MALLOC_")
}

// outerEnv is bwrap's own environment: the command's but for those.
func outerEnv(env []string) []string {
	out := make([]string, 0, len(env))
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); !loads(name) {
			out = append(out, e)
		}
	}
	return out
}

// innerEnv gives the command what outerEnv leaves out.
func (w *planner) innerEnv() {
	for _, e := range w.c.Env {
		if name, value, ok := strings.Cut(e, "="); ok && loads(name) {
			w.add("env:"+name, "the command's, and kept from bwrap, which would load what it names", built("environment"), setEnv, name, value)
		}
	}
}

// setEnv is bwrap's word for a variable. What follows it is nobody's descriptor.
const setEnv = "--setenv"
