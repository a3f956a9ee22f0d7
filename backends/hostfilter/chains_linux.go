package hostfilter

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// iptables-nft makes a chain with a default of its own first and then changes it, and
// after a change the kernel waits, when the program closes its netlink socket, for the
// end of what may still read the old chain: 8 to 16 ms for each family (measured with
// Linux 6.18), and what the other family's program does waits with it. So the chains
// are made here, with the default that they are to have, as iptables-nft would make
// them; it finds them and adds the rules.

// hooks are the chains of iptables' table filter (NF_INET_* of the kernel's
// include/uapi/linux/netfilter.h).
var hooks = []struct {
	chain string
	hook  uint32
}{{"INPUT", 1}, {"FORWARD", 2}, {"OUTPUT", 3}}

// defaults are the defaults that a family's rules give to those chains: true drops.
func defaults(rules []Rule, family int) map[string]bool {
	all := map[string]bool{}
	for _, r := range rules {
		if name, drops := setsDefault(r.Spec); r.Family == family && r.Table == "filter" && name != "" {
			all[name] = drops
		}
	}
	return all
}

// setsDefault returns the chain whose default a line sets, "" for any other line.
func setsDefault(line string) (chain string, drops bool) {
	f := strings.Fields(line)
	if len(f) < 2 || !strings.HasPrefix(f[0], ":") || f[1] != "DROP" && f[1] != "ACCEPT" {
		return "", false
	}
	return f[0][1:], f[1] == "DROP"
}

// withoutDefaults is the text for iptables-restore without those lines.
func withoutDefaults(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if chain, _ := setsDefault(line); chain == "" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// forNFT says whether a program is iptables-nft's, by the file that it is.
func forNFT(prog string) bool {
	file, err := filepath.EvalSymlinks(prog)
	return err == nil && strings.Contains(filepath.Base(file), "-nft")
}

// makeChains makes the table filter of a family and its chains, all at once.
func makeChains(family int, drops map[string]bool) error {
	n, err := openNFT(family)
	if err != nil {
		return err
	}
	defer unix.Close(n.fd)
	err = n.commit(1+len(hooks), func(i int) []byte {
		if i == 0 {
			return n.message(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, text(unix.NFTA_TABLE_NAME, "filter"))
		}
		h := hooks[i-1]
		policy := uint32(1) // NF_ACCEPT
		if drops[h.chain] {
			policy = 0 // NF_DROP
		}
		return n.message(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, slices.Concat(
			text(unix.NFTA_CHAIN_TABLE, "filter"), text(unix.NFTA_CHAIN_NAME, h.chain),
			nested(unix.NFTA_CHAIN_HOOK, append(number(unix.NFTA_HOOK_HOOKNUM, h.hook), number(unix.NFTA_HOOK_PRIORITY, 0)...)),
			number(unix.NFTA_CHAIN_POLICY, policy), text(unix.NFTA_CHAIN_TYPE, "filter")))
	}, nil)
	if err != nil {
		return fmt.Errorf("make the chains in nf_tables: %w", err)
	}
	return nil
}

// removeChains removes what makeChains has made and whatever was added to it.
func removeChains(family int) error {
	n, err := openNFT(family)
	if err != nil {
		return err
	}
	defer unix.Close(n.fd)
	err = n.commit(1, func(int) []byte {
		return n.message(unix.NFT_MSG_DELTABLE, 0, text(unix.NFTA_TABLE_NAME, "filter"))
	}, nil)
	if err != nil {
		return fmt.Errorf("remove the chains from nf_tables: %w", err)
	}
	return nil
}
