package plan

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"privet/ckks/internal/network"
	"privet/ckks/internal/program"
)

// A client gets a program from a server that may mean ill, and plans it before it decides anything.

// bomb is a public half in which operations come one after the other; each has attributes in JSON and the shape that it gives.
func bomb(first string, batch int, operations ...[2]string) []byte {
	var values, steps strings.Builder
	fmt.Fprintf(&values, `{"scale":12,"shape":%s}`, first)
	for i, operation := range operations {
		fmt.Fprintf(&values, `,{"scale":12,"shape":%s}`, operation[1])
		if i > 0 {
			steps.WriteByte(',')
		}
		fmt.Fprintf(&steps, `{%s,"name":"%d","inputs":[%d],"output":%d}`, operation[0], i, i, i+1)
	}
	return fmt.Appendf(nil, `{"format":"privet-program","version":1,"model":"bomb","ring_bits":37,"scale_bits":12,"weight_bits":12,`+
		`"weights_commitment":"%s","inputs":[{"name":"x","value":0,"magnitude":8.0}],"outputs":[{"name":"y","value":%d,"client":null}],`+
		`"values":[%s],"operations":[%s],"batch":%d}`, strings.Repeat("00", 32), len(operations), values.String(), steps.String(), batch)
}

func dense(rows, columns int) [2]string {
	return [2]string{fmt.Sprintf(`"op":"dense","weight":"w","weight_shape":[%d,%d],"bias":null`, rows, columns), fmt.Sprintf("[1,%d]", columns)}
}

func repeated(count int, operation [2]string) [][2]string {
	made := make([][2]string, count)
	for i := range made {
		made[i] = operation
	}
	return made
}

func conv(channels, size int) [2]string {
	return [2]string{
		fmt.Sprintf(`"op":"conv2d","weight":"w","weight_shape":[%d,%d,3,3],"bias":null,"stride":[1,1],"padding":[1,1,1,1],"dilation":[1,1],"groups":1`, channels, channels),
		fmt.Sprintf("[1,%d,%d,%d]", channels, size, size),
	}
}

func processor(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// peak is the most memory that this process ever had, in bytes.
func peak(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// planned reads and plans a program for one client, and says whether there is a plan.
func planned(data []byte) (bool, error) {
	parsed, err := program.Parse(data)
	if err != nil {
		return false, err
	}
	structure, err := network.Build(parsed, nil)
	if err != nil {
		return false, err
	}
	_, err = New(structure)
	return err == nil, err
}

// A client may compute and take that much for any program: of a processor's time, and of memory.
const (
	mostSeconds = 30 * time.Second
	mostMemory  = 1 << 30
)

func TestAProgramAtTheLimitsIsPlannedWithinBounds(t *testing.T) {
	same := func(op, shape string) [2]string { return [2]string{fmt.Sprintf(`"op":"%s"`, op), shape} }
	square := [2]string{`"op":"polynomial","coefficients":"c","degree":2,"bound":"b"`, "[1,64]"}
	around := func(before, after int, shape string) [2]string {
		return [2]string{fmt.Sprintf(`"op":"pad","before":[0,%d],"after":[0,%d],"constant":0`, before, after), shape}
	}
	started := peak(t)
	for _, each := range []struct {
		name, refused string
		public        []byte
	}{
		{"a wide layer", "", bomb("[1,8192]", 1, dense(8192, 8192))},
		{"two wide layers", "steps to join", bomb("[1,6000]", 1, repeated(2, dense(6000, 6000))...)},
		{"layers without activations", "steps to join", bomb("[1,512]", 1, repeated(500, dense(512, 512))...)},
		{"a wide row that is repeated", "beyond 134217728 entries", bomb("[1,8192]", 1, dense(8192, 1), same("broadcast", "[4194304,1]"))},
		{"convolutions", "a matrix of up to", bomb("[1,16,64,64]", 1, repeated(12, conv(16, 64))...)},
		{"wide values", "needs 1 levels", bomb("[1,4194304]", 1, repeated(8, same("negate", "[1,4194304]"))...)},
		{"paddings", "beyond 134217728 entries", bomb("[1,1]", 1, slices.Concat(repeated(1, around(0, 4194303, "[1,4194304]")), repeated(255, around(0, 0, "[1,4194304]")))...)},
		{"many operations", "", bomb("[1,64]", 1, repeated(4096, same("negate", "[1,64]"))...)},
		{"many activations", "levels", bomb("[1,64]", 1, repeated(4096, square)...)},
	} {
		runtime.GC()
		began := processor(t)
		_, err := planned(each.public)
		took := processor(t) - began
		t.Logf("%s: %v of processors, %d MB so far: %v", each.name, took, (peak(t)-started)>>20, err)
		if (each.refused == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), each.refused) {
			t.Errorf("%s: %v", each.name, err)
		}
		if took > mostSeconds {
			t.Errorf("%s took %v", each.name, took)
		}
		debug.FreeOSMemory()
	}
	if taken := peak(t) - started; taken > mostMemory {
		t.Errorf("%d bytes more than before", taken)
	}
}
