//go:build !js

package channel

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"time"
)

// An introduction is the SHA-256 of a client's certificate, how many inferences it may have in a minute (32 bits,
// little-endian, 0: any number), and the relay's number of the session (64 bits).
const introductionBytes = 32 + 4 + 8

// ListenLocal listens at a Unix socket, in a folder that is its owner's alone, for a relay of the same user. The relay has
// checked each client's certificate, and begins each connection with an introduction.
func ListenLocal(path string) (*Listener, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return &Listener{Listener: listener}, nil
}

// DialLocal connects to a relay of the same user at such a socket, which knows who is at its other end.
func DialLocal(path string, timeout time.Duration) (*Channel, error) {
	raw, err := net.Dial("unix", path)
	if err != nil {
		return nil, linkError("%w", err)
	}
	return Over(raw, timeout), nil
}

func introduced(raw net.Conn, timeout time.Duration) (*Channel, error) {
	made := Over(raw, timeout)
	var introduction [introductionBytes]byte
	if err := made.readFull(introduction[:], time.Now().Add(HandshakeTimeout)); err != nil {
		return nil, errors.Join(linkError("no introduction came: %w", err), raw.Close())
	}
	made.peer = hex.EncodeToString(introduction[:32])
	made.perMinute = int(binary.LittleEndian.Uint32(introduction[32:]))
	made.session = binary.LittleEndian.Uint64(introduction[36:])
	return made, nil
}
