package verify

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// A program that was just copied can be executed, however many processes are started
// beside: one that has inherited the open copy would make that fail.
func TestCopyCanBeExecuted(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	dir, stop := t.TempDir(), make(chan struct{})
	var others sync.WaitGroup
	defer others.Wait()
	defer close(stop)
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					exec.Command(program).Run()
				}
			}
		})
	}
	for i := range 300 {
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := copyProgram(program, name); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command(name).Run(); err != nil {
			t.Fatalf("copy %d: %v", i, err)
		}
	}
}
