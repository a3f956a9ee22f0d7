//go:build !linux

package lab

import (
	"errors"
	"syscall"
)

var errLinux = errors.New("the lab is made of Linux namespaces")

// Lab is Linux's.
type Lab struct{}

// Job is a command on a lab's machine.
type Job struct{}

// Start fails: the lab is made of Linux namespaces.
func Start(Options) (*Lab, error) { return nil, errLinux }

// Probe says that there is no lab here.
func Probe() error { return errLinux }

// ProbeFilter says that there is no host filter here.
func ProbeFilter() error { return errLinux }

// Stage runs none of the lab's programs here.
func Stage([]string) (int, bool) { return 0, false }

func (*Lab) Close() error                                   { return errLinux }
func (*Lab) Start(Command) (*Job, error)                    { return nil, errLinux }
func (*Lab) Processes() ([]string, error)                   { return nil, errLinux }
func (*Lab) Mark() error                                    { return errLinux }
func (*Lab) Sinks([]string, bool) (Answer, error)           { return Answer{}, errLinux }
func (*Lab) Packets(string, []string, bool) (Answer, error) { return Answer{}, errLinux }
func (*Lab) DNS(string, []string) error                     { return errLinux }
func (*Lab) Silence(bool) error                             { return errLinux }
func (*Lab) Unfilter() error                                { return errLinux }
func (*Lab) Pcap(string, string) (int, error)               { return 0, errLinux }
func (*Job) Signal(syscall.Signal, bool) error              { return errLinux }
func (*Job) Wait() (int, error)                             { return 0, errLinux }
