//go:build !js

package channel

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"time"
)

// An introduction is the SHA-256 of a client's certificate, how many inferences it may have in a minute (32 bits,
// little-endian, 0: any number), the relay's number of the session (64 bits), and the common name in the certificate after its
// length in bytes (8 bits).
const introductionBytes = fingerprintBytes + 4 + 8 + 1

const fingerprintBytes = 32

// ListenLocal listens at a Unix socket, in a folder that is its owner's alone, for a relay of the same user. The relay has
// checked each client's certificate, and begins each connection with an introduction.
func ListenLocal(path string) (*Listener, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return &Listener{Listener: listener}, nil
}

// DialLocal connects to a relay of the same user at such a socket, which begins with the SHA-256 of the certificate that the
// server at its other end showed.
func DialLocal(path string, timeout time.Duration) (*Channel, error) {
	raw, err := net.Dial("unix", path)
	if err != nil {
		return nil, linkError("%w", err)
	}
	made := Over(raw, timeout)
	var server [fingerprintBytes]byte
	err = made.readFull(server[:], time.Now().Add(HandshakeTimeout))
	if errors.Is(err, io.EOF) {
		err = linkError("the relay has not reached the server: %w", err)
	}
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	made.peer = hex.EncodeToString(server[:])
	return made, nil
}

func introduced(raw net.Conn, timeout time.Duration) (*Channel, error) {
	made := Over(raw, timeout)
	var introduction [introductionBytes]byte
	if err := made.readFull(introduction[:], time.Now().Add(HandshakeTimeout)); err != nil {
		return nil, errors.Join(linkError("no introduction came: %w", err), raw.Close())
	}
	name := make([]byte, introduction[introductionBytes-1])
	if err := made.readFull(name, time.Now().Add(HandshakeTimeout)); err != nil {
		return nil, errors.Join(linkError("the introduction has no end: %w", err), raw.Close())
	}
	made.peer, made.name = hex.EncodeToString(introduction[:32]), string(name)
	made.perMinute = int(binary.LittleEndian.Uint32(introduction[32:]))
	made.session = binary.LittleEndian.Uint64(introduction[36:])
	return made, nil
}
