//go:build unix

package session

import "syscall"

// ProcessorSeconds is the time that this process computed, on all processors together.
func ProcessorSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
