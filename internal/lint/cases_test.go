package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName is how docs/cases.md names a test: package path, a dot, the function.
var testName = regexp.MustCompile("`([a-z0-9_/]+)\\.((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)`")

// TestCasesNameTestsThatExist keeps docs/cases.md true: each row names tests that there are, or says what it waits for.
func TestCasesNameTestsThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, names := 0, 0
	tests := map[string]string{} // package path to the text of its tests
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "-") || strings.TrimSpace(cells[1]) == "what" {
			continue
		}
		rows++
		where := strings.TrimSpace(cells[2])
		found := testName.FindAllStringSubmatch(where, -1)
		if len(found) == 0 && !strings.HasPrefix(where, "later: ") {
			t.Errorf("%s: neither a test nor a reason", strings.TrimSpace(cells[0]))
		}
		for _, m := range found {
			names++
			if _, ok := tests[m[1]]; !ok {
				tests[m[1]] = textOfTests(t, m[1])
			}
			if !strings.Contains(tests[m[1]], "\nfunc "+m[2]+"(") {
				t.Errorf("%s: there is no %s.%s", strings.TrimSpace(cells[0]), m[1], m[2])
			}
		}
	}
	if rows < 90 || names < 150 {
		t.Fatalf("only %d rows with %d tests found: did the format of docs/cases.md change?", rows, names)
	}
}

func textOfTests(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// TestServersStartNoProcess is case 161: nothing in the binary can put a value on a command line.
func TestServersStartNoProcess(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.rel, "_test.go") || strings.HasPrefix(s.rel, "test/") {
			continue
		}
		for _, i := range s.file.Imports {
			if i.Path.Value == `"os/exec"` || i.Path.Value == `"plugin"` {
				t.Errorf("%s imports %s", s.rel, i.Path.Value)
			}
		}
	}
}
