package probe

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// join joins a multicast group on every interface but the loopback. The kernel
// then tells the group's routers, in a protocol that is neither TCP nor UDP
// (RFC 3376, RFC 3810): a packet that anybody can cause.
func join(ctx context.Context, group string, out io.Writer) error {
	ip := net.ParseIP(group)
	if ip == nil || !ip.IsMulticast() {
		return errUsage
	}
	links, err := net.Interfaces()
	if err != nil {
		return err
	}
	joined := 0
	for i := range links {
		if links[i].Flags&net.FlagLoopback != 0 {
			continue
		}
		c, err := net.ListenMulticastUDP("udp", &links[i], &net.UDPAddr{IP: ip, Port: 40009})
		if err != nil {
			return err
		}
		defer c.Close()
		joined++
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	_, err = fmt.Fprintf(out, "joined %s on %d interfaces\n", ip, joined)
	return err
}
