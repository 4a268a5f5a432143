package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// forbidden is what no tracked text may hold. The patterns are spelled so that this file does not match them.
var forbidden = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(^|[^a-zA-Z0-9_./-])/` + `work/`), "a path of somebody's machine"},
	{regexp.MustCompile(`/` + `root/`), "a path of somebody's machine"},
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X:)`), "unfinished work: finish it, or open an issue and name it there"},
	{regexp.MustCompile(`panic\("un` + `built"\)`), "a signature without a body"},
}

func TestNoFileSpeaksOfTheWorkplace(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skip("not a git checkout:", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if strings.Contains(name, "testdata/") || strings.HasSuffix(name, ".sum") || name == "LICENSE" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) || bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, f := range forbidden {
				if f.pattern.MatchString(line) {
					t.Errorf("%s:%d: %s: %s", name, i+1, f.why, strings.TrimSpace(line))
				}
			}
		}
	}
}
