package hostfilter

import "strconv"

// The descriptors that slirp4netns is given.
const (
	fdReady = 3 + iota // a byte when the device exists; end of file is not that
	fdExit             // ends when kgate does, and slirp4netns with it
	fdSlirpUser
	fdSlirpNet
)

// slirpArgs are slirp4netns' arguments. It is not told to configure the device
// (-c): see the package's comment.
func slirpArgs(c Config) []string {
	var args []string
	add := func(name, arg string) {
		if !omit(name) {
			args = append(args, arg)
		}
	}
	add("slirp-loopback", "--disable-host-loopback")
	if c.IPv6 {
		add("slirp-ipv6", "--enable-ipv6")
	}
	return append(args,
		"--mtu="+strconv.Itoa(c.mtu()),
		"--ready-fd="+strconv.Itoa(fdReady),
		"--exit-fd="+strconv.Itoa(fdExit),
		"--userns-path=/proc/self/fd/"+strconv.Itoa(fdSlirpUser),
		"--netns-type=path",
		"/proc/self/fd/"+strconv.Itoa(fdSlirpNet), Device)
}
