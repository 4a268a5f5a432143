package javaopt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sample = Options{
	{Short: "n", Long: "namesrvAddr", Arg: true},
	{Short: "b", Long: "brokerAddr", Arg: true, Group: "where"},
	{Short: "c", Long: "clusterName", Arg: true, Group: "where"},
	{Short: "t", Long: "topic", Arg: true, Required: true},
	{Short: "qn", Long: "totalQueueNum", Arg: true},
	{Short: "q", Long: "queue", Arg: true},
	{Short: "m", Long: "moreStats"},
	{Short: "l", Long: "list"},
}

func TestFormsOfCommonsCLI(t *testing.T) {
	for line, want := range map[string]Values{
		"-c C -t T":                 {"clusterName": "C", "topic": "T"},
		"-cC -tT":                   {"clusterName": "C", "topic": "T"},
		"--clusterName C --topic=T": {"clusterName": "C", "topic": "T"},
		"-clusterName C -topic T":   {"clusterName": "C", "topic": "T"},
		"-clusterName=C -t=T":       {"clusterName": "C", "topic": "T"},
		"--cluster C --top T":       {"clusterName": "C", "topic": "T"},
		"-c C -t T -qn 8":           {"clusterName": "C", "topic": "T", "totalQueueNum": "8"},
		"-c C -t T -q 8 -ml":        {"clusterName": "C", "topic": "T", "queue": "8", "moreStats": "true", "list": "true"},
		"-c C -t T -q -1":           {"clusterName": "C", "topic": "T", "queue": "-1"},
		"-m -c C -tT":               {"clusterName": "C", "topic": "T", "moreStats": "true"},
		"-mtT -b 127.0.0.1:1":       {"brokerAddr": "127.0.0.1:1", "topic": "T", "moreStats": "true"},
		`-c C -t "T"`:               {"clusterName": "C", "topic": "T"},
		"-n 127.0.0.1:9876;b:1 -c C --topic %DLQ%g": {"namesrvAddr": "127.0.0.1:9876;b:1", "clusterName": "C", "topic": "%DLQ%g"},
	} {
		got, rest, err := sample.Parse(strings.Fields(line))
		if err != nil || len(rest) != 0 {
			t.Errorf("%s: %v, rest %v", line, err, rest)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	for line, want := range map[string]string{
		"-c C":             "missing: -t (--topic)",
		"-t T":             "missing: one of -b (--brokerAddr), -c (--clusterName)",
		"-t T -b B -c C":   "only one of -b (--brokerAddr), -c (--clusterName) may be given",
		"-c C -t":          "option -t (--topic) needs a value",
		"-t -c C":          "option -t (--topic) needs a value",
		"-c C -t T -z":     "unknown option -z",
		"-c C -t T --nope": "unknown option --nope",
		"-c C --to T":      "option --to is ambiguous: --topic, --totalQueueNum",
		"-c C -t T -m=x":   "option -m takes no value",
	} {
		_, _, err := sample.Parse(strings.Fields(line))
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", line, err, want)
		}
	}
}

func TestWordsOfNoOptionAreKept(t *testing.T) {
	_, rest, err := sample.Parse([]string{"one", "-c", "C", "-t", "T", "two", "--", "-x"})
	if err != nil || !cmp.Equal(rest, []string{"one", "two", "-x"}) {
		t.Fatal(rest, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-c C -t T -qn 8 --topic=x -mtT")
	f.Fuzz(func(t *testing.T, line string) {
		values, _, err := sample.Parse(strings.Fields(line))
		if err == nil && !values.Has("topic") {
			t.Fatal("a required option is missing")
		}
	})
}
