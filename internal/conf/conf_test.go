package conf

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type sample struct {
	Name   string        `conf:"brokerName,important"`
	Port   int           `conf:"listenPort,important" bounds:"1..65535"`
	Auto   bool          `conf:"autoCreateTopicEnable"`
	Keep   time.Duration `conf:"fileReservedTime,h" bounds:"1..87600"`
	Check  time.Duration `conf:"transactionCheckInterval,ms"`
	Ratio  float64       `conf:"diskMaxUsedSpaceRatio" bounds:"0..100"`
	Nested nested
	Plain  string
}

type nested struct {
	Sync     bool     `conf:"flushDiskType" enum:"ASYNC_FLUSH|SYNC_FLUSH"`
	Role     string   `conf:"brokerRole" enum:"ASYNC_MASTER|SYNC_MASTER|SLAVE"`
	Servers  []string `conf:"namesrvAddr"`
	Small    int32    `conf:"small"`
	Password string   `conf:"tls.server.keyPassword,secret"`
}

func defaults() sample {
	return sample{
		Name: "broker-a", Port: 10911, Auto: true, Keep: 72 * time.Hour, Check: 30 * time.Second, Ratio: 75,
		Nested: nested{Role: "ASYNC_MASTER"},
	}
}

func mustParse(t *testing.T, text string) Values {
	t.Helper()
	v, err := Parse("broker.conf", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestBindsEveryTypeAndKeepsDefaults(t *testing.T) {
	text := "\ufeff# a comment\r\n! another\r\n" +
		"brokerName = broker-b \r\nlistenPort:20911\nautoCreateTopicEnable=false   \n" +
		"fileReservedTime 48\ntransactionCheckInterval=250\nflushDiskType=sync_flush\n" +
		"namesrvAddr=10.0.0.1:9876;\\\n  10.0.0.2:9876\ndiskMaxUsedSpaceRatio=88.5\nsmall=-7\nbrokerRole = SYNC_MASTER\n" +
		"tls.server.keyPassword=s3cret\n"
	got := defaults()
	report, err := Bind(mustParse(t, text), nil, &got)
	if err != nil || len(report.Messages()) != 0 {
		t.Fatal(err, report.Messages())
	}
	want := sample{
		Name: "broker-b", Port: 20911, Keep: 48 * time.Hour, Check: 250 * time.Millisecond, Ratio: 88.5,
		Nested: nested{
			Sync: true, Role: "SYNC_MASTER", Servers: []string{"10.0.0.1:9876", "10.0.0.2:9876"}, Small: -7, Password: "s3cret",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	var out strings.Builder
	if err := Print(&out, false, &got); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "s3cret") {
		t.Fatal("a secret is printed")
	}
	again := defaults()
	if _, err := Bind(mustParse(t, out.String()), nil, &again); err != nil {
		t.Fatal(err)
	}
	again.Nested.Password = got.Nested.Password
	if diff := cmp.Diff(got, again); diff != "" {
		t.Fatalf("what is printed does not read back: %s", diff)
	}
	out.Reset()
	if err := Print(&out, true, &got); err != nil || out.String() != "brokerName=broker-b\nlistenPort=20911\n" {
		t.Fatalf("important keys: %q, %v", out.String(), err)
	}
}

func TestRefusalsNameKeyValueAndBounds(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"word for number":  {"listenPort=http", `broker.conf: listenPort: "http" is not a whole number between 1 and 65535`},
		"out of range":     {"listenPort=70000", `broker.conf: listenPort: "70000" is out of range: it must be between 1 and 65535`},
		"type's range":     {"small=4294967296", `broker.conf: small: "4294967296" is out of range: it must be between -2147483648 and 2147483647`},
		"unit":             {"fileReservedTime=48h", `broker.conf: fileReservedTime: "48h" is not a whole number of hours between 1 and 87600`},
		"bool":             {"autoCreateTopicEnable=yes", `broker.conf: autoCreateTopicEnable: "yes" is not true or false`},
		"empty number":     {"listenPort=", `broker.conf: listenPort: "" is not a whole number between 1 and 65535`},
		"enum of bool":     {"flushDiskType=FSYNC", `broker.conf: flushDiskType: "FSYNC" is not one of ASYNC_FLUSH, SYNC_FLUSH`},
		"enum of string":   {"brokerRole=LEADER", `broker.conf: brokerRole: "LEADER" is not one of ASYNC_MASTER, SYNC_MASTER, SLAVE`},
		"not a number":     {"diskMaxUsedSpaceRatio=NaN", `broker.conf: diskMaxUsedSpaceRatio: "NaN" is not a number`},
		"number too large": {"diskMaxUsedSpaceRatio=101", `broker.conf: diskMaxUsedSpaceRatio: "101" is out of range: it must be between 0 and 100`},
	} {
		t.Run(name, func(t *testing.T) {
			got := defaults()
			_, err := Bind(mustParse(t, c.text), nil, &got)
			if err == nil || err.Error() != c.want {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			if diff := cmp.Diff(defaults(), got); diff != "" {
				t.Fatalf("a refused value changed something: %s", diff)
			}
		})
	}
}

func TestUnknownKeysNameTheNearest(t *testing.T) {
	unused := map[string]string{"sendMessageThreadPoolNums": "threads follow the machine"}
	v := mustParse(t, "flushDiskTyp=SYNC_FLUSH\nLISTENPORT=1\nentirelyElse=1\nsendMessageThreadPoolNums=16\nsendMessageThreadPoolNum=16\n")
	got := defaults()
	report, err := Bind(v, unused, &got)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`broker.conf: unknown key "LISTENPORT"; did you mean "listenPort"?`,
		`broker.conf: unknown key "entirelyElse"`,
		`broker.conf: unknown key "flushDiskTyp"; did you mean "flushDiskType"?`,
		`broker.conf: unknown key "sendMessageThreadPoolNum"; did you mean "sendMessageThreadPoolNums"?`,
		`broker.conf: sendMessageThreadPoolNums has no effect: threads follow the machine`,
	}
	if diff := cmp.Diff(want, report.Messages()); diff != "" {
		t.Fatal(diff)
	}
}

func TestLaterLayersWin(t *testing.T) {
	v := mustParse(t, "brokerName=file\nlistenPort=1\n")
	v.Merge(Values{"brokerName": {Text: "environment", Origin: "environment"}})
	if err := v.Assign("brokerName= flag", "--set"); err != nil {
		t.Fatal(err)
	}
	if err := v.Assign("brokerName", "--set"); err == nil {
		t.Fatal("a word without = is taken")
	}
	got := defaults()
	if _, err := Bind(v, nil, &got); err != nil || got.Name != "flag" || got.Port != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestExpansionIsOff(t *testing.T) {
	got := defaults()
	if _, err := Bind(mustParse(t, "brokerName=${user.home}/x"), nil, &got); err != nil || got.Name != "${user.home}/x" {
		t.Fatalf("%q, %v", got.Name, err)
	}
}

func FuzzParseAndBind(f *testing.F) {
	f.Add("listenPort=10911\n# x\nbrokerName=a\\\n b\n")
	f.Add("a:b\r\n\\u00e9 = \\uD83D\n=\n:::")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		got := defaults()
		_, err = Bind(v, nil, &got)
		if err == nil && (got.Port < 1 || got.Port > 65535 || got.Keep < time.Hour) {
			t.Fatalf("bounds are not kept: %+v", got)
		}
	})
}
