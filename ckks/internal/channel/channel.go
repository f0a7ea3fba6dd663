// Package channel is the link between two parties: framed messages of known or bounded length over TLS 1.3 with
// certificates on both sides, every byte counted and every wait bounded. Its policy is that of docs/reference/protocols/channel.md.
package channel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
	"unicode"
)

// A frame is a kind, the payload's length (32 bits, little-endian) and the payload.
const (
	headerBytes  = 5
	kindData     = 1
	kindAbort    = 2
	maxAbortText = 512
	// pace is how many bytes must move in each second beyond the timeout.
	pace = 256 << 10
)

// Reason says why a peer gave up.
type Reason byte

// Reasons; their numbers are those of docs/reference/protocols/channel.md.
const (
	UnknownProgram Reason = 2
	BadRequest     Reason = 5
	Internal       Reason = 6
	Misbehaved     Reason = 7
	Busy           Reason = 8
	NotAllowed     Reason = 10
	TimedOut       Reason = 11
)

// Channel sends and receives whole messages. It is for one goroutine.
type Channel struct {
	connection net.Conn
	timeout    time.Duration
	peer, name string
	perMinute  int
	session    uint64
	// Sent and Received count payloads and headers.
	Sent, Received int64
	// Rounds counts how often this party turned from sending to receiving.
	Rounds  int
	sending bool
}

// Over is a channel over a connection that is somebody else's business to protect, such as a browser's WebSocket.
func Over(connection net.Conn, timeout time.Duration) *Channel {
	return &Channel{connection: connection, timeout: timeout, sending: true}
}

// Peer is the SHA-256 of the peer's certificate in hexadecimal: how Privet names a peer. It is empty where the connection
// knows none.
func (c *Channel) Peer() string { return c.peer }

// PeerName is the common name in the peer's certificate.
func (c *Channel) PeerName() string { return c.name }

// PerMinute is how many inferences the peer may have in a minute, 0 for any number.
func (c *Channel) PerMinute() int { return c.perMinute }

// Session is the number by which a relay knows this conversation, 0 without one.
func (c *Channel) Session() uint64 { return c.session }

// Send sends one message.
func (c *Channel) Send(payload []byte) error {
	return c.send(kindData, payload)
}

// Deliver sends a message, unless making it failed.
func (c *Channel) Deliver(payload []byte, err error) error {
	if err != nil {
		return err
	}
	return c.Send(payload)
}

func (c *Channel) send(kind byte, payload []byte) error {
	if uint64(len(payload)) > 1<<32-1 {
		return fmt.Errorf("a message of %d bytes is too long for a frame", len(payload))
	}
	header := [headerBytes]byte{kind}
	binary.LittleEndian.PutUint32(header[1:], uint32(len(payload)))
	if err := c.connection.SetWriteDeadline(c.deadline(len(payload))); err != nil {
		return linkError("%w", err)
	}
	for _, part := range [][]byte{header[:], payload} {
		if _, err := c.connection.Write(part); err != nil {
			if abort := c.lastWords(); kind != kindAbort && abort != nil {
				return abort
			}
			return c.broken(err)
		}
	}
	c.Sent += int64(headerBytes + len(payload))
	c.sending = true
	return nil
}

// lastWords is why the peer gave up, if it said so before it stopped to listen; nil if it did not.
func (c *Channel) lastWords() error {
	var header [headerBytes]byte
	if err := c.readFull(header[:], time.Now().Add(linger)); err != nil || header[0] != kindAbort {
		return nil
	}
	length := int(binary.LittleEndian.Uint32(header[1:]))
	if length > maxAbortText+1 {
		return nil
	}
	return c.aborted(length)
}

// Receive receives a message of exactly so many bytes.
func (c *Channel) Receive(length int) ([]byte, error) {
	return c.receive(length, length, time.Now().Add(c.timeout))
}

// ReceiveWhenever receives a message of exactly so many bytes, however long the peer takes to begin with it.
func (c *Channel) ReceiveWhenever(length int) ([]byte, error) {
	return c.receive(length, length, time.Time{})
}

// ReceiveUpTo receives a message of at most so many bytes.
func (c *Channel) ReceiveUpTo(limit int) ([]byte, error) {
	return c.receive(0, limit, time.Now().Add(c.timeout))
}

// receive receives a message that must begin by a time, if there is one.
func (c *Channel) receive(least, most int, begin time.Time) ([]byte, error) {
	if c.sending {
		c.Rounds, c.sending = c.Rounds+1, false
	}
	var header [headerBytes]byte
	if err := c.readFull(header[:], begin); err != nil {
		return nil, err
	}
	length := int(binary.LittleEndian.Uint32(header[1:]))
	switch {
	case header[0] == kindAbort && length <= maxAbortText+1:
		return nil, c.aborted(length)
	case header[0] != kindData:
		return nil, misbehaved("a frame of kind %d", header[0])
	case length < least || length > most:
		return nil, misbehaved("a message of %d bytes where %d to %d belong", length, least, most)
	}
	payload := make([]byte, length)
	if err := c.readFull(payload, c.deadline(length)); err != nil {
		return nil, err
	}
	c.Received += int64(headerBytes + length)
	return payload, nil
}

// deadline gives a message the timeout, and a second more for each 256 KiB.
func (c *Channel) deadline(length int) time.Time {
	return time.Now().Add(c.timeout + time.Duration(length/pace)*time.Second)
}

func (c *Channel) readFull(into []byte, deadline time.Time) error {
	if err := c.connection.SetReadDeadline(deadline); err != nil {
		return linkError("%w", err)
	}
	if _, err := io.ReadFull(c.connection, into); err != nil {
		return c.broken(err)
	}
	return nil
}

func (c *Channel) broken(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return linkError("the peer was silent for too long (%v): %w", c.timeout, err)
	}
	return linkError("the link broke: %w", err)
}

// linger is how long a side that gives up takes in and forgets what the peer still sends.
const linger = time.Second

// Abort tells the peer why this party gives up; the text must hold nothing secret.
func (c *Channel) Abort(reason Reason, text string) {
	if len(text) > maxAbortText {
		text = strings.ToValidUTF8(text[:maxAbortText], "")
	}
	// Whether it arrives or not, the conversation is over.
	_ = c.send(kindAbort, append([]byte{byte(reason)}, text...))
	if half, ok := c.connection.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		// A peer that still sends finds the link broken, and the abort lost, if nobody takes what it sends.
		_ = c.connection.SetReadDeadline(time.Now().Add(linger))
		_, _ = io.Copy(io.Discard, c.connection)
	}
}

func (c *Channel) aborted(length int) error {
	if length < 1 {
		return misbehaved("an abort without a reason")
	}
	payload := make([]byte, length)
	if err := c.readFull(payload, c.deadline(length)); err != nil {
		return err
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(payload[1:]), "?"))
	return &Error{Family: familyOf(Reason(payload[0])), Text: "the peer gave up", Said: ": " + text}
}

// Close ends the conversation.
func (c *Channel) Close() error { return c.connection.Close() }
