package probe

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// swap exchanges two names over and over, as fast as it can without keeping
// others from looking at them, until a file appears.
func swap(ctx context.Context, a, b, until string, out io.Writer) error {
	n := 0
	for ; ctx.Err() == nil; n++ {
		if _, err := os.Lstat(until); err == nil {
			break
		}
		if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
			return fmt.Errorf("exchange %q and %q: %w", a, b, err)
		}
		time.Sleep(200 * time.Microsecond)
	}
	_, err := fmt.Fprintf(out, "exchanged %d times\n", n)
	return err
}
