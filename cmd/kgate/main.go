// Kgate launches one command inside the box that this operating system's
// kernel can really install, says beforehand whether it can, and proves it
// afterwards.
package main

import "os"

func main() { os.Exit(Main()) }
