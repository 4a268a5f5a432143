package embed

import (
	"bufio"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/broker"
	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/namesrv"
	"github.com/quorate/quorate/remoting"
)

func keysIn(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var keys []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, _, _ := strings.Cut(s.Text(), "="); key != "" {
			keys = append(keys, key)
		}
	}
	if len(keys) < 30 {
		t.Fatalf("%s has %d keys only", name, len(keys))
	}
	return keys
}

func boundBy(of ...any) map[string]bool {
	keys := map[string]bool{}
	for _, f := range conf.Fields(of...) {
		keys[f.Key] = true
	}
	return keys
}

func TestEveryKeyOfRocketMQIsBoundOrExplained(t *testing.T) {
	b, n, tls := broker.DefaultConfig(), namesrv.DefaultConfig(), remoting.DefaultTLSSettings()
	for _, c := range []struct {
		file   string
		bound  map[string]bool
		unused map[string]string
	}{
		{"broker-defaults.properties", boundBy(&b, &tls), brokerUnused()},
		{"store-keys.txt", boundBy(&b, &tls), brokerUnused()},
		{"namesrv-defaults.properties", boundBy(&n, &tls), namesrvUnused()},
	} {
		for _, key := range keysIn(t, c.file) {
			if _, explained := c.unused[key]; !c.bound[key] && !explained {
				t.Errorf("%s: %s is neither bound nor explained", c.file, key)
			}
		}
		for key := range c.unused {
			if c.bound[key] {
				t.Errorf("%s: %s is bound, and yet listed as without effect", c.file, key)
			}
		}
	}
}

// differing are keys whose default is not compared, with the reason.
var differing = map[string]string{
	"slaveTimeout": "a default client gives up after 3 s, and would never see the status of a send that waited so long",
	"listenPort":   "BrokerConfig and NettyServerConfig both print one; what a broker listens on is 10911",
}

func TestDefaultsAreRocketMQs(t *testing.T) {
	b, n := broker.DefaultConfig(), namesrv.DefaultConfig()
	for file, of := range map[string]any{"broker-defaults.properties": &b, "namesrv-defaults.properties": &n} {
		values, err := conf.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range conf.Fields(of) {
			want, known := values[f.Key]
			if _, differs := differing[f.Key]; known && !differs && f.Text() != want.Text {
				t.Errorf("%s: the default of %s is %s, RocketMQ's is %s", file, f.Key, f.Text(), want.Text)
			}
		}
	}
}

func TestSamplesStartUnmodified(t *testing.T) {
	files, err := filepath.Glob("../conf/*.conf")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	more, err := filepath.Glob("../conf/*/*.properties")
	if err != nil || len(more) < 2 {
		t.Fatal(more, err)
	}
	for _, file := range append(files, more...) {
		v, err := conf.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		settings, origins := map[string]string{}, map[string]string{}
		for key, value := range v {
			settings[key], origins[key] = value.Text, value.Origin
		}
		var lines []string
		if strings.Contains(file, "namesrv") {
			_, _, err = NameServer{Settings: settings, Origins: origins}.config(HostFromSettings, slog.New(slog.DiscardHandler))
		} else {
			lines, err = Broker{Port: -1, Settings: settings, Origins: origins}.Lint()
		}
		if err != nil || len(lines) > 0 {
			t.Errorf("%s: %v %q", file, err, lines)
		}
	}
}

// HA.md 83, 85: contradictions are said before the start and never refused.
func TestLintNamesWhatReplicationKeysDoNotDo(t *testing.T) {
	for key, settings := range map[string]map[string]string{
		"inSyncReplicas=1":         {"brokerRole": "SYNC_MASTER"},
		"minInSyncReplicas=2":      {"brokerRole": "SYNC_MASTER", "totalReplicas": "2", "inSyncReplicas": "1", "minInSyncReplicas": "2"},
		"enableAutoInSyncReplicas": {"enableAutoInSyncReplicas": "true"},
		"totalReplicas=1":          {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "3"},
	} {
		lines, err := Broker{Port: -1, Settings: settings}.Lint()
		if err != nil || !strings.Contains(strings.Join(lines, "\n"), key) {
			t.Errorf("%v: %v %q", settings, err, lines)
		}
	}
}
