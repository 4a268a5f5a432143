package conf

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEditReplacesInPlaceAndKeepsTheRest(t *testing.T) {
	text := "# brokerName=no\nbrokerName = a\\\n  b\nother: x\r\nlistenPort 1\nbrokerName=twice\nlast=1"
	got := string(Edit([]byte(text), map[string]string{"brokerName": "c:\\d", "listenPort": "2", "new": "3"}))
	want := "# brokerName=no\nbrokerName=c:\\\\d\nother: x\r\nlistenPort=2\nlast=1\nnew=3\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func FuzzEditReadsBack(f *testing.F) {
	f.Add("a=1\n#b\nb=2\\\n3\n", "x\\y")
	f.Add("b", "1")
	f.Fuzz(func(t *testing.T, text, value string) {
		before, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		after, err := Parse("f", Edit([]byte(text), map[string]string{"b": value}))
		if err != nil {
			return // a value that no properties text can hold
		}
		if _, has := after["b"]; !has {
			t.Fatalf("the key is lost: %q", Edit([]byte(text), map[string]string{"b": value}))
		}
		if len(before) > len(after) {
			t.Fatalf("keys are lost: %v, %v", before, after)
		}
	})
}
