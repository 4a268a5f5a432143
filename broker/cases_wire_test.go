package broker_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Case 126: for every request that the broker serves, each required field is left out in turn, and unknown ones are added.
// The answer names the field, is never an empty success, and the connection stays usable.
func TestCase126EveryRequiredFieldIsNamed(t *testing.T) {
	n := start(t, config(t))
	served := map[protocol.RequestCode]bool{}
	for _, table := range n.b.Routes() {
		for _, r := range table {
			served[r.Code] = true
		}
	}
	ask := func(code protocol.RequestCode, ext map[string]string) *protocol.Command {
		c := &protocol.Command{Code: int32(code), Language: protocol.Java, Version: protocol.ServerVersion}
		for k, v := range ext {
			c.Ext = c.Ext.Add(k, v)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		answer, err := n.client.Invoke(ctx, mainAddr, c)
		require.NoError(t, err, "%d", code)
		return answer
	}
	checked := 0
	for _, r := range protocol.RequestTypes() {
		code := r.Request.Code()
		if !served[code] {
			continue
		}
		required := requiredFields(reflect.TypeOf(r.Request).Elem())
		for name := range required {
			ext := map[string]string{"unknownField": "x"}
			for other, value := range required {
				if other != name {
					ext[other] = value
				}
			}
			answer := ask(code, ext)
			require.NotEqual(t, protocol.Success, protocol.ResponseCode(answer.Code), "%d without %s", code, name)
			require.Contains(t, string(answer.Remark), name, "%d without %s", code, name)
			checked++
			if required[name] == "1" { // a number
				ext[name] = "many"
				answer = ask(code, ext)
				require.NotEqual(t, protocol.Success, protocol.ResponseCode(answer.Code), "%d with a wrong %s", code, name)
				require.Contains(t, string(answer.Remark), name, "%d with a wrong %s", code, name)
			}
		}
	}
	require.Greater(t, checked, 60)
}

// requiredFields lists a header's required fields with a value of their type.
func requiredFields(t reflect.Type) map[string]string {
	all := map[string]string{}
	for f := range fieldsOf(t) {
		name, option, _ := strings.Cut(f.Tag.Get("ext"), ",")
		if option != "required" {
			continue
		}
		switch f.Type.Kind() {
		case reflect.String:
			all[name] = "x"
		case reflect.Bool:
			all[name] = "true"
		default:
			all[name] = "1"
		}
	}
	return all
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for f := range t.Fields() {
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				fieldsOf(f.Type)(yield)
			} else if !yield(f) {
				return
			}
		}
	}
}

// Cases 161 and 162: every key, with values that would harm: a shell's, a path's, and numbers that stop the service. What is
// not on the list of changeable keys is refused by name, what is stays within its bounds, and nothing has changed after.
func TestCase162OnlyTheAllowListChangesAndOnlyWithinBounds(t *testing.T) {
	cfg := config(t)
	n := start(t, cfg)
	before := string(n.must(&protocol.GetBrokerConfigRequest{}, nil, nil).Body)
	live := map[string]bool{}
	for _, f := range conf.Fields(&cfg.Live) {
		live[f.Key] = true
	}
	tried := 0
	for _, f := range conf.Fields(&cfg) {
		if f.Key == "" {
			continue
		}
		values := []string{"$(touch /tmp/x)", "`id`;rm -rf /", "../../etc/passwd", "-1", "999999999999999999999", "a\x00b"}
		if !live[f.Key] {
			values = append(values, "0", "1", "true", "")
		}
		for _, value := range values {
			if f.Key == "regionId" && !strings.ContainsAny(value, "$/\x00`") {
				continue // a name like any other
			}
			answer := n.ask(&protocol.UpdateBrokerConfigRequest{}, []byte(f.Key+"="+value))
			code := protocol.ResponseCode(answer.Code)
			if live[f.Key] {
				require.Equal(t, protocol.InvalidParameter, code, "%s=%q: %s", f.Key, value, answer.Remark)
			} else {
				require.Equal(t, protocol.NoPermission, code, "%s=%q: %s", f.Key, value, answer.Remark)
			}
			require.Contains(t, string(answer.Remark), f.Key)
			tried++
		}
	}
	require.Greater(t, tried, 300)
	require.Equal(t, before, string(n.must(&protocol.GetBrokerConfigRequest{}, nil, nil).Body))
}

// hostileNames are what attackers and accidents put where a name belongs.
var hostileNames = []string{
	"..", ".", "../x", "../../../x", "/x", `\x`, `..\x`, "a/b", "a\x00b", "a b", "a\nb", strings.Repeat("x", 128), "x" + strings.Repeat("ä", 80),
	"ｔｏｐｉｃ", "tоpic", // full width, and a Cyrillic letter
	"%RETRY%../x", "%DLQ%../x", "$(x)", "con?", "a*",
}

// Case 163: hostile names by every request that takes one. Each is refused, and the tree of files has no new name.
func TestCase163HostileNamesMakeNoFiles(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 1)
	sent := n.send("T", "x", nil)
	require.NotEmpty(t, sent.MsgID)
	require.Len(t, n.pull("g", "T", 0), 1)
	n.restart() // so that all files are there
	above := filepath.Dir(filepath.Dir(n.cfg.Store.RootDir))
	tree := func() map[string]bool {
		names := map[string]bool{}
		require.NoError(t, filepath.WalkDir(above, func(path string, _ fs.DirEntry, err error) error {
			names[path] = true
			return err
		}))
		return names
	}
	before := tree()
	for _, name := range hostileNames {
		beat := protocol.HeartbeatData{ClientID: "c", ConsumerDataSet: []protocol.ConsumerData{consumer(name, "T")}}
		subscribed := protocol.HeartbeatData{ClientID: "c", ConsumerDataSet: []protocol.ConsumerData{consumer("good", name)}}
		for what, r := range map[string]struct {
			request protocol.Request
			body    any
		}{
			"send":         {&protocol.SendMessageRequest{ProducerGroup: "pg", Topic: name, DefaultTopic: "TBW102", DefaultTopicQueueNums: 1}, []byte("x")},
			"create":       {&protocol.CreateTopicRequest{Topic: name, DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil},
			"create list":  {&protocol.CreateTopicListRequest{}, protocol.CreateTopicListRequestBody{TopicConfigList: []protocol.TopicConfig{{TopicName: name, ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG"}}}},
			"delete":       {&protocol.DeleteTopicRequest{Topic: name}, nil},
			"pull topic":   {&protocol.PullMessageRequest{ConsumerGroup: "g", Topic: name, SysFlag: 4, MaxMsgNums: 1, Subscription: "*"}, nil},
			"pull group":   {&protocol.PullMessageRequest{ConsumerGroup: name, Topic: "T", SysFlag: 4, MaxMsgNums: 1, Subscription: "*"}, nil},
			"commit topic": {&protocol.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: name, CommitOffset: 1}, nil},
			"commit group": {&protocol.UpdateConsumerOffsetRequest{ConsumerGroup: name, Topic: "T", CommitOffset: 1}, nil},
			"send back":    {&protocol.ConsumerSendMsgBackRequest{Offset: 0, Group: name, DelayLevel: 1}, nil},
			"group":        {&protocol.UpdateAndCreateSubscriptionGroupRequest{}, protocol.SubscriptionGroupConfig{GroupName: name, ConsumeEnable: true, RetryQueueNums: 1}},
			"heartbeat":    {&protocol.HeartbeatRequest{}, beat},
		} {
			answer := n.ask(r.request, r.body)
			if len(name) == 128 && (what == "pull group" || what == "commit group" || what == "group" || what == "heartbeat" || what == "send back") {
				continue // 255 bytes are allowed for a group
			}
			require.NotEqual(t, protocol.Success, protocol.ResponseCode(answer.Code), "%s of %q", what, name)
		}
		n.ask(&protocol.HeartbeatRequest{}, subscribed)
		n.ask(&protocol.QueryMessageRequest{Topic: name, Key: "k", MaxNum: 1, EndTimestamp: 1}, nil)
	}
	n.restart()
	table := n.table().TopicConfigTable
	for _, name := range hostileNames {
		require.NotContains(t, table, name)
	}
	for path := range tree() {
		if name := filepath.Base(path); !before[path] && !strings.HasSuffix(name, ".bak") && strings.ContainsAny(name, `.\ $?*`+"\x00\n") {
			require.Failf(t, "new file", "%q", path)
		}
	}
}

// Case 85: senders whose bodies name them, sends that time out and connections that go while answers are under way. Each
// stored body is exactly what one sender sent.
func TestCase85BodiesNeverMix(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 1)
	senders, each := scaled(20, 1000), scaled(30, 100)
	network := n.dial
	var wg sync.WaitGroup
	for id := range senders {
		wg.Go(func() {
			for i := range each {
				c := remoting.NewClient(remoting.ClientConfig{Dial: network}, slog.New(slog.DiscardHandler))
				timeout := 10 * time.Second
				if i%4 == 3 {
					timeout = time.Duration(i) * 20 * time.Microsecond // the client goes while its request is under way
				}
				ctx, cancel := context.WithTimeout(context.Background(), timeout)
				body := strings.Repeat(fmt.Sprintf("%d/%d;", id, i), 1+(id*31+i*7)%300)
				_, _ = c.Invoke(ctx, mainAddr, protocol.NewRequest(&protocol.SendMessageRequest{
					ProducerGroup: "pg", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: 1,
				}, []byte(body)))
				if i%5 == 0 {
					_, _ = c.Invoke(ctx, mainAddr, protocol.NewRequest(&protocol.PullMessageRequest{
						ConsumerGroup: "g", Topic: "T", QueueOffset: int64(i), MaxMsgNums: 32, SysFlag: 4, Subscription: "*",
					}, nil))
				}
				cancel()
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for offset := int64(0); ; {
		records := n.pullNow("g", "T", offset)
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			first, _, ok := strings.Cut(string(r.Body), ";")
			require.True(t, ok)
			var id, i int
			_, err := fmt.Sscanf(first, "%d/%d", &id, &i)
			require.NoError(t, err)
			require.Equal(t, strings.Repeat(first+";", 1+(id*31+i*7)%300), string(r.Body))
			require.False(t, seen[first], "%s twice", first)
			seen[first] = true
			offset = r.QueueOffset + 1
		}
	}
	require.GreaterOrEqual(t, len(seen), senders*each/2)
}

// pullNow is a pull that does not wait.
func (n *node) pullNow(group, topic string, offset int64) (out []message.Record) {
	n.Helper()
	answer := n.ask(&protocol.PullMessageRequest{
		ConsumerGroup: group, Topic: topic, QueueOffset: offset, MaxMsgNums: 32, SysFlag: 4, Subscription: "*",
	}, nil)
	for b := answer.Body; len(b) > 0; {
		r, err := message.DecodeRecord(b, true)
		require.NoError(n, err)
		out = append(out, r)
		b = b[r.Size:]
	}
	return out
}

// Case 173: a message id names an address that an attacker chose. The broker takes the offset alone, and dials nobody.
func TestCase173AMessageIDDialsNobody(t *testing.T) {
	n := start(t, config(t))
	dialled := 0
	n.stop()
	n.outgoing = func(context.Context, string) (net.Conn, error) {
		dialled++
		return nil, errors.New("nobody is to be dialled")
	}
	n.start()
	n.createTopic("T", 1)
	n.send("T", "x", nil)
	require.Len(t, n.pull("g", "T", 0), 1)
	for _, host := range []string{"169.254.169.254:80", "10.0.0.1:22", "[::1]:6379", "127.0.0.1:1"} {
		id := message.OffsetID(netip.MustParseAddrPort(host), 0)
		n.must(&protocol.ConsumerSendMsgBackRequest{Offset: 0, Group: "g", DelayLevel: 1, OriginMsgID: id, OriginTopic: "T"}, nil, nil)
		n.ask(&protocol.QueryMessageRequest{Topic: "T", Key: id, MaxNum: 1, EndTimestamp: 1}, nil)
		require.NotEmpty(t, n.must(&protocol.ViewMessageRequest{Topic: "T", Offset: 0}, nil, nil).Body)
	}
	require.Zero(t, dialled)
}

// Case 174: large pulls from cold files over TLS. Every record has its checksum and its place.
func TestCase174ColdPullsOverTLS(t *testing.T) {
	cfg := config(t)
	n := &node{T: t, cfg: cfg}
	mode, err := remoting.DefaultTLSSettings().Server(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	n.tls = mode
	n.start()
	t.Cleanup(func() { n.stop() })
	n.createTopic("T", 1)
	count := scaled(60, 20000)
	for i := range count {
		n.send("T", strings.Repeat(fmt.Sprintf("%d;", i), 2000), nil)
	}
	n.restart() // what is read now comes from files
	n.client = remoting.NewClient(remoting.ClientConfig{
		Dial: n.dial, TLS: &remoting.ClientTLS{Config: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // self-signed
	}, slog.New(slog.DiscardHandler))
	got := 0
	for got < count {
		for _, r := range n.pull("g", "T", int64(got)) {
			require.Equal(t, strings.Repeat(fmt.Sprintf("%d;", got), 2000), string(r.Body))
			got++
		}
	}
}
