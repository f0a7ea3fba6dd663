// Command privet-ckks is one party of suite ckks: it does the job that a file names, and says what happens as one JSON
// object on each line of standard output.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

// job is what a party does. Roles are "server" and "client" of scenarios 1 and 2, "coordinator", "member" and
// "cohort-client" of scenario 3, and "plan".
type job struct {
	Role    string `json:"role"`
	Keys    string `json:"keys"`
	Program string `json:"program"`
	// Scenario is "encrypted-data" (also where it is empty) or "encrypted-model"; Statistical of the first asks for
	// flooding that hides weights statistically.
	Scenario    string `json:"scenario"`
	Statistical bool   `json:"statistical"`
	// Port of this machine is where a server listens (0: any free one), or the other party is.
	Port int `json:"port"`
	// Socket is where a server listens for a relay instead, or a client finds one; see channel.ListenLocal and DialLocal.
	Socket  string  `json:"socket"`
	Hash    string  `json:"program_hash"`
	Inputs  string  `json:"inputs"`
	Result  string  `json:"result"`
	Timeout float64 `json:"timeout"`
	// Members is the size of a cohort, Member which of it a party is; the one with the weights is member 0.
	Members int `json:"members"`
	Member  int `json:"member"`
	// Scheduled says that whoever started a server shares out processors and memory; see gate.
	Scheduled bool `json:"scheduled"`
	// Memory is the most resident memory in bytes; 0 sets no limit.
	Memory int64 `json:"memory"`
}

// collectPercent is by how much memory may grow between two collections.
const collectPercent = 25

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: privet-ckks JOB.json")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		emit("failed", failure(err))
		os.Exit(1)
	}
}

func run(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("%s is no job: %w", path, err)
	}
	// Nearly all memory is long arrays of numbers, which the collector need not look into: to collect often costs little.
	debug.SetGCPercent(collectPercent)
	if j.Memory > 0 {
		// The collector works harder near the limit. Plans are checked against it, so that it is kept.
		debug.SetMemoryLimit(j.Memory * 9 / 10)
	}
	switch j.Role {
	case "server":
		return serve(j)
	case "client":
		if terms(j).Scenario == session.EncryptedModel {
			return inferOnEncryptedModel(j)
		}
		return infer(j)
	case "coordinator":
		return coordinate(j)
	case "member":
		return join(j)
	case "cohort-client":
		return inferWithCohort(j)
	case "plan":
		return describe(j)
	}
	return fmt.Errorf("there is no role %q", j.Role)
}

func terms(j job) session.Terms {
	if j.Scenario == "" {
		j.Scenario = session.EncryptedData
	}
	return session.Terms{Scenario: j.Scenario, Statistical: j.Statistical}
}

var output sync.Mutex

// emit writes an event as one line.
func emit(event string, fields map[string]any) {
	if fields == nil {
		fields = map[string]any{}
	}
	fields["event"] = event
	line, err := json.Marshal(fields)
	if err != nil {
		line = fmt.Appendf(nil, `{"event":"failed","type":"PrivetError","message":%q}`, err.Error())
	}
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

// failure names the class of privet.errors that an error is in Python.
func failure(err error) map[string]any {
	family := "Misuse"
	var known *channel.Error
	if errors.As(err, &known) {
		family = known.Family
	}
	return map[string]any{"type": family, "message": err.Error()}
}
