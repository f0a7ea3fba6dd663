package channel

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// relay introduces a connection to a listener, and gives what the listener makes of it.
func relay(t *testing.T, introduction []byte) (*Channel, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := ListenLocal(path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	raw, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Write(introduction); err != nil {
		t.Fatal(err)
	}
	raw.Close()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return listener.Handshake(accepted, time.Second)
}

func TestARelayTellsFingerprintAndName(t *testing.T) {
	fingerprint := bytes.Repeat([]byte{0xab}, fingerprintBytes)
	introduction := binary.LittleEndian.AppendUint32(bytes.Clone(fingerprint), 3)
	introduction = binary.LittleEndian.AppendUint64(introduction, 7)
	introduction = append(append(introduction, 15), "privet member 1"...)
	c, err := relay(t, introduction)
	if err != nil {
		t.Fatal(err)
	}
	if c.Peer() != hex.EncodeToString(fingerprint) || c.PeerName() != "privet member 1" || c.PerMinute() != 3 || c.Session() != 7 {
		t.Errorf("%s, %s, %d, %d", c.Peer(), c.PeerName(), c.PerMinute(), c.Session())
	}
	if _, err := relay(t, introduction[:len(introduction)-1]); err == nil || !strings.Contains(err.Error(), "no end") {
		t.Errorf("half a name: %v", err)
	}
}

func TestARelayTellsTheServersFingerprint(t *testing.T) {
	for _, whole := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "socket")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			if whole {
				_, _ = raw.Write(bytes.Repeat([]byte{0xcd}, fingerprintBytes))
			}
			raw.Close()
		}()
		c, err := DialLocal(path, time.Second)
		switch {
		case whole && (err != nil || c.Peer() != strings.Repeat("cd", fingerprintBytes)):
			t.Errorf("%v", err)
		case !whole && err == nil:
			t.Error("a server without a certificate")
		}
		listener.Close()
	}
}
