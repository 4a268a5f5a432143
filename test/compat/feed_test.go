package compat

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/javapeer"
)

var update = flag.Bool("update", false, "write testdata/feed.golden from the Java broker")

// feedSet are the broker keys that Feed needs: transactions checked back while it runs. The Java broker gathers the outcomes
// of transactions for up to 3 s, so a shorter time-out has it now and then check what was decided.
var feedSet = map[string]string{
	"transactionTimeOut": "6000", "transactionCheckInterval": "3000", "defaultTopicQueueNums": "2",
}

// masks hide what differs between any two runs. queueId and queueOffset stay for FixtureOrder, where they are promised.
var masks = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b[0-9A-F]{24,}\b`), `ID`},
	{regexp.MustCompile(`brokerName=[^,\]]+`), `brokerName=B`},
	{regexp.MustCompile(`(bornHost|storeHost)=/?[0-9.]+:[0-9]+`), `$1=HOST`},
	{regexp.MustCompile(`(bornTimestamp|storeTimestamp|preparedTransactionOffset|commitLogOffset|CONSUME_START_TIME|pop_ct|DELIVER_MS|__store_timestamp)=[0-9]+`), `$1=N`},
	{regexp.MustCompile(`CLUSTER=[^,}]+`), `CLUSTER=C`},
}

var queueMask = regexp.MustCompile(`(queueId|queueOffset|MIN_OFFSET|MAX_OFFSET|CONSUME_START_TIME)=[0-9]+`)

// maskFeed makes the output of two runs comparable. Lines of check and retried are printed by other threads: they are
// sorted to the end.
func maskFeed(out string) string {
	var lines, late []string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		for _, m := range masks {
			line = m.re.ReplaceAllString(line, m.with)
		}
		if !strings.Contains(line, "topic=FixtureOrder") {
			line = queueMask.ReplaceAllString(line, "$1=Q")
		}
		if strings.HasPrefix(line, "check ") || strings.HasPrefix(line, "retried ") {
			late = append(late, line)
			continue
		}
		lines = append(lines, line)
	}
	slices.Sort(late)
	return strings.Join(append(lines, late...), "\n") + "\n"
}

func runFeed(t *testing.T, peer *javapeer.Peer, nameServer string) string {
	t.Helper()
	require.NoError(t, peer.Compile(t.Context(), t.TempDir(), "java/Feed.java"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := peer.Run(ctx, t.TempDir(), "Feed", nil, "", nameServer)
	require.NoError(t, err)
	return maskFeed(out)
}

var feedGolden = filepath.Join("testdata", "feed.golden")

// The Java client cannot tell the product from the Java broker: the same program prints the same lines.
func TestJavaClientPrintsWhatItPrintsAgainstJava(t *testing.T) {
	peer := openJava(t, javapeer.V5)
	want, err := os.ReadFile(feedGolden)
	require.NoError(t, err)
	c := startQuorate(t, feedSet)
	require.Equal(t, string(want), runFeed(t, peer, c.nameServer))
}

// The stored lines are those of the Java broker, run here and now; with -update they are written anew.
func TestStoredLinesAreThoseOfTheJavaBroker(t *testing.T) {
	peer := openJava(t, javapeer.V5)
	c := startJava(t, peer, feedSet)
	got := runFeed(t, peer, c.nameServer)
	if *update {
		require.NoError(t, os.WriteFile(feedGolden, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(feedGolden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
