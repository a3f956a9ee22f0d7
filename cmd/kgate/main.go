// Kgate launches one command inside the box that this operating system's
// kernel can really install, says beforehand whether it can, and proves it
// afterwards.
package main

import (
	"os"

	_ "github.com/kgate-dev/kgate/launcher/memory"
)

func main() { os.Exit(Main()) }
