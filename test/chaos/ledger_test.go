package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/client"
)

// The checker itself: each broken history must be refused, for the right reason.
func TestLedgerRefusesBrokenHistories(t *testing.T) {
	began := time.Now()
	at := func(offset int64) found { return found{queue: client.Queue{Topic: topic}, offset: offset} }
	// send is called at second s and answered half a second later.
	send := func(id string, s int, offset int64) entry {
		called := began.Add(time.Duration(s) * time.Second)
		return entry{id: id, queue: client.Queue{Topic: topic}, offset: offset, acknowledged: true, called: called, answered: called.Add(time.Second / 2)}
	}
	unknown := entry{id: "u", called: began, answered: began.Add(time.Second)}
	for _, test := range []struct {
		name    string
		entries []entry
		there   map[string]found
		want    string // "" is a good history
	}{
		{"whole", []entry{send("a", 0, 0), send("b", 1, 1)}, map[string]found{"a": at(0), "b": at(1)}, ""},
		{"unknown and there", []entry{send("a", 0, 0), unknown}, map[string]found{"a": at(0), "u": at(1)}, ""},
		{"unknown and not there", []entry{send("a", 0, 0), unknown}, map[string]found{"a": at(0)}, ""},
		{"at the same time, in any order", []entry{send("a", 0, 1), send("b", 0, 0)}, map[string]found{"a": at(1), "b": at(0)}, ""},
		{"lost", []entry{send("a", 0, 0), send("b", 1, 1)}, map[string]found{"a": at(0)}, "lost: b"},
		{"moved", []entry{send("a", 0, 0)}, map[string]found{"a": at(1)}, "moved: a"},
		{"out of order", []entry{send("a", 0, 1), send("b", 1, 0)}, map[string]found{"a": at(1), "b": at(0)}, "out of order: a"},
		{"refused and there", []entry{{id: "r", refused: true}}, map[string]found{"r": at(0)}, "kept: r"},
		{"phantom", nil, map[string]found{"p": at(0)}, "phantom"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := (&ledger{entries: test.entries}).check(test.there)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}
