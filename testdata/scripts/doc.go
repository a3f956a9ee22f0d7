// Package scripts holds the scenarios that show what kgate does, and this page
// is their manual. A scenario is a txtar file of this directory: a script of
// testscript (github.com/rogpeppe/go-internal/testscript), then the files it
// needs. "go test ./cmd/kgate" runs all of them with the kgate of the source
// tree, as the present user and, when that is root, again as an ordinary one.
// "kgate verify" runs those that prove a row of doctor, with the kgate it is.
//
// # A script
//
//	# One line that says what this shows.
//	# proves: network off
//	[!userns] skip 'bubblewrap cannot make a box here'
//	status 0 kgate init
//	status 7 kgate run -- sh -c 'exit 7'
//	! stdout .
//	-- proj/file --
//	content
//
// The name is NAME.txtar, the category first (policy-narrow, escape-files).
// The first comment is what people see. A line "# proves: ROW[, ROW...]" makes
// the script a scenario of kgate verify (darwin-* on macOS only): when doctor calls ROW READY, this
// script must pass. Rows that are parts of one claim go by its name: "box" for
// bubblewrap, namespaces and markers, "network restricted" for the tools of the
// host filter; the row "network" goes by its mode, "network off". Names that begin with escape- are run by kgate verify only
// with --escape.
//
// # Where it runs
//
// Each script has a machine of its own as far as files go:
//
//	$WORK       the script's directory; files of the archive land here
//	$HOME       $WORK/home, empty, mode 0700
//	$PROJ       $WORK/proj, the working directory at the start
//	$TMPDIR     $WORK/.tmp
//	$KGATE      the kgate under test; also first on PATH as kgate
//
// so an archive entry proj/a is $PROJ/a and home/.kgate/config.yaml is the
// person's policy.
//
// # Commands
//
// Those of testscript (exec, stdin, stdout, stderr, grep, cmp, exists, cp, env,
// mkdir, rm, symlink, chmod, ttyin, ttyout, skip, stop, ...; -count=N counts)
// and:
//
//	status [-in FILE] [-out] N CMD [ARG...]
//	    Runs CMD and fails unless its exit status is the number N (128+n when
//	    signal n ended it). Its output is there for stdout and stderr. After
//	    "lab up" it runs on the lab's machine unless -out is given; exec always
//	    runs outside. -in FILE is its standard input (stdin FILE works outside
//	    the lab only). N may be "any", or !N for any status but N; so is "! status N".
//
//	start NAME CMD [ARG...]
//	    Starts CMD (where status would) and leaves it running. Its output goes
//	    to $WORK/NAME.out and $WORK/NAME.err.
//
//	signal SIG NAME
//	    Sends SIG (TERM, INT, KILL, ...) to the process that start NAME made,
//	    and to it alone; -group sends it to its process group, which it leads.
//
//	finish NAME N
//	    Waits for it, at most 20 seconds, and fails unless its status is N.
//	    stdout and stderr then look at what it said.
//
//	eventually [-for D] WHAT
//	    Polls until WHAT holds, at most D (10s). WHAT is "exists FILE",
//	    "absent FILE", "grep REGEX FILE", or "run CMD [ARG...]" (exit status 0,
//	    run where status would). Use this; never sleep.
//
//	json [-line N] FILE PATH VALUE
//	    Fails unless the JSON in FILE (or stdout, stderr) has VALUE at PATH, a
//	    list of keys and indices joined by dots; "len" is a list's length,
//	    and "[key=value]" picks the first element of a list with that field.
//	    VALUE beginning with ~ is a regular expression. -line N takes line N
//	    of a file of JSON lines, -1 being the last. "! json" is the opposite; it
//	    too fails when the text is not JSON.
//
//	snapshot DIR...
//	unchanged
//	    Notes every name, kind, mode, owner and content below DIR..., and fails
//	    if anything there differs later. Names the launch may change are left
//	    out with "snapshot -except GLOB DIR...", matched against the path below DIR.
//
//	gone [-now]
//	    Fails if a process that this script started, at any remove, is left. It
//	    is found by $WORK in its arguments, environment or working directory,
//	    and in a lab by being on the lab's machine. Waits up to 5 seconds for
//	    the last to go, or not at all with -now. Zombies do not count.
//
//	shows TEXT...
//	    Adds a line of evidence, which kgate verify prints.
//
// # Attacks
//
// Scripts whose names begin with escape- attack, and keep count. What attacks
// prints a line for each, "through NAME" or "held NAME: WHY", as kgate-probe does
// with "attack [NAME:]KIND[=ARG]..."; "kgate-probe own CMD..." runs CMD with every
// capability over namespaces of its own, in which all files are read-only.
// "kgate-probe [-t D] terminal [modes=NAME] [input=NAME] [type=TEXT] -- CMD..." is a
// person at a terminal of their own, who types TEXT when CMD prints "ready to type",
// and says afterwards whether CMD changed the terminal's modes and whether
// something was typed for the shell; PERSON_TTY tells CMD which terminal that is.
// "kgate-probe [-t D] swap A B FILE" exchanges two names until FILE appears.
// "kgate-probe send [NAME:]HOW=ADDR,PORT..." sends something in each of these ways (see
// package probe), with the text leak-NAME in it, and prints how far the kernel let it: whether it
// left is for the witnesses of the lab to say. It sends in a box's network alone.
// "kgate-probe hand KIND[=PATH]... -- CMD..." starts CMD with open descriptors (file,
// directory, socket, listening, pipe, terminal; input is a connection for its standard
// input), and "kgate-probe give PATH FILE" passes an open file to whoever connects.
// Nothing that attacks may harm a machine on which it gets through.
//
//	control [NAME...]    these worked without the box; with no name: those that the
//	                     last command printed as through
//	control NAME... by packets LINK KEY=VALUE...
//	control NAME... by sink KEY=VALUE...
//	                     those of them that the witness saw worked, each with its name
//	                     for NAME in the question
//	held [NAME...]       these got nothing; with no name: all that it printed, none through
//	limit [NAME...]      these get through, as docs/threat-model.md says
//	nocontrol WHY NAME...  these need not work without the box on every machine
//	tally                fails if an attack has no control, and prints the counts
//
// # The lab
//
// On Linux, "lab up" makes a machine and an internet out of namespaces, as the
// present user, and from then on status, start and eventually run there. See
// the documentation of package lab for who answers on which address.
//
//	lab up [KEY=VALUE...]   upstream=ADDR (what resolv.conf names)
//	lab dns NAME ANSWER     script an answer while it runs (see lab.Zone)
//	lab dns-stop            the name servers fall silent
//	lab dns-go              and speak again
//	lab unfilter            takes the packet filter out of the boxes that are there, from
//	                        outside, to see what holds without it
//	lab down                ends it; otherwise it ends with the script
//
//	bare [-6] [-own] CMD [ARG...]
//	                        status 0 of CMD in bwrap and slirp4netns without any filter:
//	                        what the network looks like when nothing is refused. With -own
//	                        CMD is not in the box and has every right over its network
//
// "lab up", or outside the lab the command "probe", puts a client into the
// project. $PROJ/kgate-probe tries one thing; its statuses are 0 for an
// answer, 1 for a refusal or silence, 2 for a mistake in its arguments:
//
//	kgate-probe [-t D] tcp HOST PORT        prints what the server says
//	kgate-probe [-t D] udp HOST PORT [TEXT] sends one datagram, prints the reply
//	kgate-probe [-t D] dns NAME [TYPE]      asks the system's name server, prints the answers
//	kgate-probe [-t D] dns@ADDR [-tcp] NAME [TYPE]
//	kgate-probe [-t D] http URL             prints the body
//	kgate-probe [-t D] hold HOST PORT FILE  keeps a connection to an echo (port 7) alive until
//	                                        FILE appears, then prints "alive after N"
//	kgate-probe [-t D] knock HOST PORT      sends a datagram, waits for one from somebody else
//	                                        (UDP port 5001 of the lab does that) and answers it
//	kgate-probe join GROUP                  joins a multicast group, which the kernel announces in IGMP or ICMPv6
//	kgate-probe call NAME...                makes system calls (see package probe), prints what the kernel says
//	kgate-probe [-t D] self PORT [ADDR]     talks to itself on its loopback
//	kgate-probe listen PATH...              answers on unix sockets until it is killed; @NAME is abstract,
//	                                        datagram:NAME and packets:NAME are of other types
//	kgate-probe [-t D] unix PATH            prints what that one says
//	kgate-probe exec PROGRAM [ARG...]       becomes PROGRAM, whatever command lines are checked
//
// The witnesses are the servers of the lab, which record all that reaches them,
// and the captures on the box's own interface and on the machine's outer link.
// All of them count from "lab up" or from the last "lab mark". Each one takes
// up to a second for what is expected to arrive; a negative is judged after the
// captures have seen a packet that was sent after everything before it.
//
//	sink [!] KEY=VALUE...       some (no) record of a server: proto=tcp|udp|dns,
//	                            dst=ADDR, port=N, text=REGEX (what was said or asked)
//	packets [!] LINK KEY=VALUE...
//	                            some (no) packet on LINK, box or outer or any:
//	                            proto=tcp|udp|icmp|icmp6|arp|ip4|ip6|proto-N|fragment, dst=, src=,
//	                            port=, name=REGEX, text=REGEX (of all its bytes), dir=out (sent by the
//	                            box, on outer by the machine); KEY!=VALUE leaves out what has that
//	                            (The machine's kernel speaks ARP and IPv6 of its own on outer.)
//	dnsseen NAME                a query for NAME (and names below) reached the
//	                            internet's name server, or any link (! dnsseen NAME: none did)
//
// Every refusal needs its positive control in the same script: show first that
// the thing answers when nothing stands in its way, and that the witness sees it.
//
// # Conditions
//
// Beside testscript's ([linux], [darwin], [exec:PROGRAM], ...):
//
//	[userns]      bubblewrap made a box here
//	[hostfilter]  bubblewrap, slirp4netns and iptables worked together here
//	[lab]         the lab can be made here
//	[mounts]      a file system was mounted in namespaces of one's own here
//	[binfmt]      a list of interpreters of one's own (binfmt_misc) was mounted here
//	[seatbelt]    sandbox-exec enforced a profile here
//	[root]        the scripts run as uid 0
//	[tty]         a pseudo-terminal can be opened
//
// Each is a probe that does the thing. Under "go test" the variable
// KGATE_MUST=userns,hostfilter,... (kgate verify: --must) turns a lacking one
// into a failure; it is read by the harness, never by kgate run.
package scripts
