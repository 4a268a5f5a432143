package mqadmin

import (
	"os"
	"strings"
	"testing"
)

func TestEveryCommandOfRocketMQIsServedOrExplained(t *testing.T) {
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(text))
	if len(names) != 89 {
		t.Fatalf("%d names, RocketMQ 5.5.0 registers 89", len(names))
	}
	known := map[string]bool{}
	for _, c := range commands() {
		if known[c.name] {
			t.Errorf("%s is there twice", c.name)
		}
		known[c.name] = true
		if _, explained := unserved[c.name]; explained {
			t.Errorf("%s is served, and listed as not", c.name)
		}
	}
	for _, name := range names {
		if _, explained := unserved[name]; !known[name] && !explained {
			t.Errorf("%s is neither served nor explained", name)
		}
	}
}

// TestOptionsAreUnambiguous finds an option whose short or long name another one of the same command has.
func TestOptionsAreUnambiguous(t *testing.T) {
	for _, c := range commands() {
		seen := map[string]bool{}
		for _, o := range append(common, c.options...) {
			for _, name := range []string{"-" + o.Short, "--" + o.Long} {
				if seen[name] {
					t.Errorf("%s has %s twice", c.name, name)
				}
				seen[name] = true
			}
			if o.Text == "" {
				t.Errorf("%s: %s says nothing", c.name, o.Long)
			}
		}
	}
}

func TestTimestamps(t *testing.T) {
	for text, want := range map[string]bool{"now": true, "1676730526212": true, "2023-02-18#14:28:46:212": true, "yesterday": false, "2023-02-18": false} {
		if _, err := parseTimestamp(text); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	ms, err := parseTimestamp("2023-02-18#14:28:46:212")
	if err != nil || human(ms) != "2023-02-18 14:28:46,212" {
		t.Errorf("%s, %v", human(ms), err)
	}
}
