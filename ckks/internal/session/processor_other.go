//go:build !unix

package session

// processorSeconds is unknown on this system.
func processorSeconds() float64 { return 0 }
