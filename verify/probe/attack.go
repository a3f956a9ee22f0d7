package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// attack is one way out of a box. It returns nil if it got through, and otherwise
// what stood in its way. arg is what stands after "NAME=" on the command line.
type attack func(ctx context.Context, arg string) error

// attackTime bounds one attack: what does not answer has not answered.
const attackTime = 5 * time.Second

// attacks makes each attack in a process of its own, which it may wreck, and
// prints a line for each: "through NAME" or "held NAME: WHY".
func attacks(ctx context.Context, specs []string, out io.Writer) error {
	table := attackTable()
	for _, spec := range specs {
		name, kind, _ := label(spec)
		if table[kind] == nil {
			return fmt.Errorf("there is no attack %q", kind)
		}
		err := apart(ctx, spec)
		if errors.Is(err, errUnready) {
			return err
		}
		if err != nil {
			fmt.Fprintf(out, "held %s: %s\n", name, oneLine(err.Error()))
			continue
		}
		fmt.Fprintf(out, "through %s\n", name)
	}
	return nil
}

// errUnready is that an attack could not be made at all, which is no refusal.
var errUnready = errors.New("not ready to attack")

func unready(err error) error { return fmt.Errorf("%w: %w", errUnready, err) }

// apart makes one attack in a process of its own.
func apart(ctx context.Context, spec string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attackTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", Stage, "-t", attackTime.String(), "attack-alone", spec)
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput()
	text, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n") // of a crash the cause
	switch {
	case err == nil:
		return nil
	case cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == notReady:
		return unready(errors.New(text))
	case ctx.Err() != nil:
		return fmt.Errorf("nothing came of it in %v", attackTime)
	case text != "":
		return errors.New(text)
	default:
		return err
	}
}

// label takes apart NAME:KIND=ARG. Without NAME the kind is the name.
func label(spec string) (name, kind, arg string) {
	kind, arg, _ = strings.Cut(spec, "=")
	if before, after, ok := strings.Cut(kind, ":"); ok {
		return before, after, arg
	}
	return kind, kind, arg
}

// alone makes one attack in this process.
func alone(ctx context.Context, spec string) error {
	_, kind, arg := label(spec)
	f := attackTable()[kind]
	if f == nil {
		return errUsage
	}
	return f(ctx, arg)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
