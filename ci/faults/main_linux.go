package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kgate-dev/kgate/verify/lab"
)

// stageDrive is the argument that makes this program the one that tries all,
// as whoever it is to be tried as.
const stageDrive = "faults-drive"

// orders are what the person asked for.
type orders struct {
	Points, Sample int
	Only           string
	Root, Kgate    string
	List, Verbose  bool
}

func main() {
	if status, ok := lab.Stage(os.Args); ok {
		os.Exit(status)
	}
	if len(os.Args) == 3 && os.Args[1] == stageTrace {
		os.Exit(traceMain(os.Args[2]))
	}
	var err error
	if len(os.Args) == 3 && os.Args[1] == stageDrive {
		var o orders
		if err = json.Unmarshal([]byte(os.Args[2]), &o); err == nil {
			err = o.drive()
		}
	} else {
		err = run()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(1) // it has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run() error {
	o := orders{}
	flag.IntVar(&o.Points, "n", 12, "points for each process, mode and end")
	flag.IntVar(&o.Sample, "sample", 0, "try `N` points taken at random (0: all)")
	flag.StringVar(&o.Only, "only", "", "try the points whose names match `PATTERN`")
	flag.StringVar(&o.Kgate, "kgate", "", "the kgate to break (default: built from this tree)")
	flag.BoolVar(&o.List, "list", false, "print the points and try none")
	flag.BoolVar(&o.Verbose, "v", false, "print each point")
	account := flag.String("user", "", "as root: try as the user `NAME`")
	flag.Parse()
	if _, err := regexp.Compile(o.Only); err != nil {
		return err
	}
	var err error
	if o.Root, err = os.MkdirTemp("", "kgate-faults-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.Root)
	if o.Kgate == "" {
		o.Kgate = filepath.Join(o.Root, "kgate")
		cmd := exec.Command("go", "build", "-o", o.Kgate, "./cmd/kgate")
		cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build kgate: %w", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	copied := filepath.Join(o.Root, "faults")
	if err := exec.Command("cp", self, copied).Run(); err != nil {
		return err
	}
	text, _ := json.Marshal(o)
	cmd := exec.Command(copied, stageDrive, string(text))
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.Root, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "HOME="+o.Root)
	if *account != "" {
		if cmd.SysProcAttr, err = as(*account, o.Root, o.Kgate, copied); err != nil {
			return err
		}
	}
	return cmd.Run()
}

// as gives files to a user and says how to become that one.
func as(account string, files ...string) (*syscall.SysProcAttr, error) {
	u, err := user.Lookup(account)
	if err != nil {
		return nil, fmt.Errorf("an ordinary user: %w (ci/test adds kgate-test)", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	for _, f := range files {
		if err := os.Chown(f, uid, gid); err != nil {
			return nil, err
		}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// drive makes the lab, shows that the checks see what they are for, and tries
// all that was asked for.
func (o orders) drive() error {
	l, err := lab.Start(lab.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	m := &machine{lab: l, root: o.Root, self: filepath.Join(o.Root, "faults"), kgate: o.Kgate, verbose: o.Verbose}
	if !o.List {
		shown, err := m.controls(o.Sample / 2)
		if err != nil {
			return err
		}
		fmt.Printf("%d checks shown to fail for a launcher with the defect\n", shown)
	}
	all, err := m.kills(o.Points)
	if err != nil {
		return err
	}
	all = append(all, limits()...)
	pattern := regexp.MustCompile(o.Only)
	all = slices.DeleteFunc(all, func(t trial) bool { return !pattern.MatchString(t.name) })
	if o.Sample > 0 && o.Sample < len(all) {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:o.Sample]
	}
	if o.List {
		for _, t := range all {
			fmt.Println(t.name)
		}
		return nil
	}
	return m.all(all)
}

// tally is what came of one kind of trials.
type tally struct{ tried, missed, bad int }

func (m *machine) all(trials []trial) error {
	kinds, order := map[string]*tally{}, []string{}
	begun, bad, places := time.Now(), 0, map[string]bool{}
	for _, t := range trials {
		kind, _, _ := strings.Cut(t.name, " ")
		if kinds[kind] == nil {
			kinds[kind] = &tally{}
			order = append(order, kind)
		}
		c := kinds[kind]
		r, found, err := m.try(t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		c.tried++
		at := t.name
		if t.strike.Step > 0 {
			if r.Struck {
				places[kind+t.strike.Role+t.mode+fmt.Sprint(t.strike.Step, t.free)] = true
				at += " (" + r.Call + ")"
			} else {
				c.missed++
				at += " (not reached)"
			}
		}
		if len(found) > 0 {
			c.bad++
			bad++
			fmt.Printf("FAILED  %s, status %d, %.1f s\n", at, r.Status, r.Took.Seconds())
			for _, f := range found {
				fmt.Printf("        %s\n", f)
			}
		} else if m.verbose {
			fmt.Printf("ok      %s, status %d, %.1f s\n", at, r.Status, r.Took.Seconds())
		}
	}
	for _, kind := range order {
		c := kinds[kind]
		fmt.Printf("%s: %d tried, %d not reached, %d failed\n", kind, c.tried, c.missed, c.bad)
	}
	fmt.Printf("%d points, %d of them system calls of a launch, in %.0f s\n", len(trials), len(places), time.Since(begun).Seconds())
	if bad > 0 {
		return fmt.Errorf("%d of %d points left something wrong", bad, len(trials))
	}
	return nil
}
