//go:build !linux

package session

// Available is the memory in bytes that the machine has left for new processes, 0 where that is not known.
func Available() int64 { return 0 }
