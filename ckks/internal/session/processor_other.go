//go:build !unix

package session

// ProcessorSeconds is unknown on this system.
func ProcessorSeconds() float64 { return 0 }
