package main

import (
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/protocol"
)

func TestEveryRequestCodeIsServedOrExplained(t *testing.T) {
	servers, err := routes()
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range protocol.RequestCodes {
		_, explained := protocol.Unserved[code]
		if isServed := len(servers[code]) > 0; isServed == explained {
			t.Errorf("%d %s: served by %v, listed as unserved: %v", code, code, servers[code], explained)
		}
	}
	for code := range servers {
		if !code.Known() {
			t.Errorf("%d is served and not in the code table", code)
		}
	}
}

func TestDocumentIsUpToDate(t *testing.T) {
	var b strings.Builder
	if err := run(&b); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../docs/request-codes.md")
	if err != nil || string(text) != b.String() {
		t.Fatalf("docs/request-codes.md differs from what the servers say: run make gen (%v)", err)
	}
}
