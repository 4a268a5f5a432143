package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/javapeer"
)

// adminCommand is one mqadmin call and what it must print. Placeholders in braces are filled in by adminScene.
type adminCommand struct {
	line string   // arguments, separated by spaces; an underscore between double braces is a space
	want []string // regular expressions, each must match somewhere in the output
	not  []string // none may match; a stack trace never may
	fail bool     // the command must report an error: the original does, too
}

// adminCommands run in this order in one JVM. They are what the original prints: run with -peer java to see.
var adminCommands = []adminCommand{
	// cluster and NameServer
	{line: "clusterList -n {ns}", want: []string{`#Cluster Name\s+#Broker Name\s+#BID`, `DefaultCluster\s+{name}\s+0\s+{broker}\s+V5_`}},
	{line: "clusterList -n {ns} -m", want: []string{`#InTotalYest`, `DefaultCluster\s+{name}`}},
	{line: "getNamesrvConfig -n {ns}", want: []string{`={8,}{ns}={8,}`, `listenPort\s*=\s*{nsport}`}},
	{line: "updateNamesrvConfig -n {ns} -k deleteTopicWithBrokerRegistration -v false", want: []string{`update name server config success!`}},
	{line: "updateKvConfig -n {ns} -s ns-one -k key-one -v value-one", want: []string{`create or update kv config to namespace success`}},
	{line: "deleteKvConfig -n {ns} -s ns-one -k key-one", want: []string{`delete kv config from namespace success`}},
	{line: "wipeWritePerm -n {ns} -b {name}", want: []string{`wipe write perm of broker\[{name}\] in name server\[{ns}\] OK, [1-9][0-9]*`}},
	{line: "addWritePerm -n {ns} -b {name}", want: []string{`add write perm of broker\[{name}\] in name server\[{ns}\] OK, [1-9][0-9]*`}},

	// topics
	{line: "updateTopic -n {ns} -b {broker} -t AdminMade -r 4 -w 4 -p 6", want: []string{`create topic to {broker} success`, `topicName=AdminMade.*readQueueNums=4.*writeQueueNums=4`}},
	{line: "updateTopic -n {ns} -c DefaultCluster -t AdminOrdered -r 2 -w 2 -o true", want: []string{`create topic to {broker} success`}},
	{line: "updateTopicPerm -n {ns} -b {broker} -t AdminMade -p 4", want: []string{`update topic perm from 6 to 4 in {broker} success`}},
	{line: "updateTopicPerm -n {ns} -c DefaultCluster -t AdminMade -p 6", want: []string{`update topic perm from 4 to 6 in {broker} success`}},
	{line: "updateTopicList -n {ns} -b {broker} -f {topicsfile}", want: []string{`submit batch of topic config to {broker} success`}},
	{line: "topicRoute -n {ns} -t {topic}", want: []string{`"brokerName":\s*"{name}"`, `"readQueueNums":\s*2`, `{broker}`}},
	{line: "topicRoute -n {ns} -l -t {topic}", want: []string{`DefaultCluster\s+{name}\s+\{0={broker}\}\s+2\s+2\s+6`, `Total:\s+1\s+2\s+2`}},
	{line: "topicRoute -n {ns} -t NoSuchTopic", fail: true, want: []string{`CODE: 17`}},
	{line: "topicList -n {ns}", want: []string{`(?m)^AdminMade$`, `(?m)^AdminOrdered$`, `(?m)^AdminListed$`, `(?m)^{topic}$`, `(?m)^TBW102$`}},
	{line: "topicList -n {ns} -c", want: []string{`DefaultCluster\s+{topic}\s+{group}`}},
	{line: "topicClusterList -n {ns} -t {topic}", want: []string{`(?m)^DefaultCluster$`}},
	{line: "topicStatus -n {ns} -t {topic}", want: []string{`#Broker Name\s+#QID\s+#Min Offset\s+#Max Offset\s+#Last Updated`, `{name}\s+0\s+0\s+5\s+\d{4}-`, `{name}\s+1\s+0\s+5\s+\d{4}-`}},
	{line: "allocateMQ -n {ns} -t {topic} -i 10.0.0.1,10.0.0.2", want: []string{`"10.0.0.1":\[\{`, `"10.0.0.2":\[\{`}},
	{line: "updateOrderConf -n {ns} -t AdminOrdered -m put -v {name}:2", want: []string{`update orderConf success. topic=\[AdminOrdered\], orderConf=\[{name}:2\]`}},
	{line: "updateOrderConf -n {ns} -t AdminOrdered -m get", want: []string{`get orderConf success. topic=\[AdminOrdered\], orderConf=\[{name}:2\]`}},
	{line: "updateOrderConf -n {ns} -t AdminOrdered -m delete", want: []string{`delete orderConf success. topic=\[AdminOrdered\]`}},

	// messages; sendMessage can run once in a JVM, since it keeps its producer
	{line: "sendMessage -n {ns} -t AdminMade -p hello{{_}}there -k admin-key -c TagAdmin", want: []string{`#Broker Name\s+#QID\s+#Send Result\s+#MsgId`, `{name}\s+\d\s+SEND_OK\s+[0-9A-F]{32}`}},
	{line: "queryMsgById -n {ns} -t {topic} -i {offsetid}", want: []string{`OffsetID:\s+{offsetid}`, `Topic:\s+{topic}`, `Tags:\s+\[TagA\]`, `Keys:\s+\[admin-0\]`, `Queue ID:\s+0`, `Queue Offset:\s+0`, `Reconsume Times:\s+0`, `consumerGroup={group}, trackType=CONSUMED`, `consumerGroup={idlegroup}, trackType=NOT_ONLINE`}},
	{line: "queryMsgByUniqueKey -n {ns} -t {topic} -i {uniquekey}", want: []string{`Topic:\s+{topic}`, `Keys:\s+\[admin-0\]`, `Message Body Path:`}},
	{line: "queryMsgByKey -n {ns} -t {topic} -k admin-3", want: []string{`#Message ID\s+#QID\s+#Offset`, `[0-9a-zA-Z]{32}\s+1\s+1`}},
	{line: "queryMsgByOffset -n {ns} -t {topic} -b {name} -i 1 -o 2", want: []string{`Queue ID:\s+1`, `Queue Offset:\s+2`, `Keys:\s+\[admin-5\]`}},
	{line: "printMsg -n {ns} -t {topic} -d true", want: []string{`minOffset=0, maxOffset=5`, `MSGID: [0-9A-Za-z]{32}.*BODY: body-0`, `BODY: body-9`}},
	{line: "printMsg -n {ns} -t {topic} -d true -s TagB", want: []string{`BODY: body-1`}, not: []string{`BODY: body-0`}},
	{line: "printMsgByQueue -n {ns} -t {topic} -a {name} -i 0 -p true -d true", want: []string{`BODY: body-0`, `BODY: body-8`}, not: []string{`BODY: body-1`}},
	{line: "printMsgByQueue -n {ns} -t {topic} -a {name} -i 0 -f true", want: []string{`Tag: TagA\s+Count: 5`}},
	{line: "consumeMessage -n {ns} -t {topic} -b {name} -i 0 -o 0 -c 2 -g {othergroup}", want: []string{`Consume ok`, `body-0|BODY`}},
	{line: "queryCq -n {ns} -b {broker} -t {topic} -q 0 -i 0 -c 2", want: []string{`idx: 0`, `msg: MessageExt|physicOffset|"physicOffset"`}},
	{line: "checkMsgSendRT -n {ns} -t AdminMade -a 3 -s 64", want: []string{`#Broker Name\s+#QID\s+#Send Result\s+#RT`, `{name}\s+\d\s+true\s+\d+`, `Avg RT:`}},
	{line: "sendMsgStatus -n {ns} -b {name} -c 3 -s 64", want: []string{`rt=\d+ms, SendResult=SendResult \[sendStatus=SEND_OK`}},

	// groups and clients
	{line: "updateSubGroup -n {ns} -b {broker} -g AdminGroup -r 5 -q 2", want: []string{`create subscription group to {broker} success`, `groupName=AdminGroup.*retryQueueNums=2.*retryMaxTimes=5`}},
	{line: "updateSubGroup -n {ns} -c DefaultCluster -g AdminGroup2", want: []string{`create subscription group to {broker} success`}},
	{line: "updateSubGroupList -n {ns} -b {broker} -f {groupsfile}", want: []string{`submit batch of group config to {broker} success`}},
	{line: "getConsumerConfig -n {ns} -g AdminGroup", want: []string{`DefaultCluster`, `{name}`, `groupName\s*=\s*AdminGroup`, `retryMaxTimes\s*=\s*5`}},
	{line: "consumerConnection -n {ns} -g {group}", want: []string{`#ClientId\s+#ClientAddr\s+#Language\s+#Version`, `{client}\s+127.0.0.1:\d+\s+GO`, `#Topic\s+#SubExpression`, `{topic}\s+\*`, `%RETRY%{group}\s+\*`, `ConsumeType: CONSUME_PASSIVELY`, `MessageModel: CLUSTERING`, `ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET`}},
	{line: "producerConnection -n {ns} -g {producergroup} -t {topic}", want: []string{`0001\s+{producerclient}\s+127.0.0.1:\d+\s+GO\s+V4_`}},
	{line: "producer -n {ns} -b {broker}", want: []string{`producer group \({producergroup}\) instance : clientId={producerclient},remoteIP=/127.0.0.1:\d+, language=GO, version=\d+, lastUpdateTimestamp=\d+`}},
	{line: "consumerProgress -n {ns} -g {group}", want: []string{`#Topic\s+#Broker Name\s+#QID\s+#Broker Offset\s+#Consumer Offset`, `{topic}\s+{name}\s+0\s+5\s+5\s+0`, `Consume Diff Total: 0`}},
	{line: "consumerProgress -n {ns}", want: []string{`#Group\s+#Count\s+#Version\s+#Type\s+#Model`, `{group}\s+1\s+V\S+\s+PUSH\s+CLUSTERING`}},
	{line: "consumerStatus -n {ns} -g {group}", want: []string{`1\s+{client}\s+V4_`, `Rebalance OK`, `Same subscription in the same group of consumer`}},
	{line: "consumerStatus -n {ns} -g {group} -i {client}", want: []string{`#Consumer Properties#`, `PROP_CONSUME_TYPE\s+: CONSUME_PASSIVELY`, `#Consumer Subscription#`, `Topic: {topic}`, `#Consumer Offset#`, `{topic}\s+{name}`}},
	{line: "brokerConsumeStats -n {ns} -b {broker}", want: []string{`#Topic\s+#Group\s+#Broker Name\s+#QID`, `{topic}\s+{group}\s+{name}\s+0\s+5\s+5\s+0`, `Diff Total: \d+`}},
	{line: "statsAll -n {ns} -t {topic}", want: []string{`#Topic\s+#Consumer Group\s+#Accumulation`, `{topic}\s+{group}\s+0`}},

	// progress
	{line: "resetOffsetByTime -n {ns} -g {idlegroup} -t {topic} -s 0", want: []string{`{name}\s+0\s+\d+`, `{name}\s+1\s+\d+`}},
	{line: "consumerProgress -n {ns} -g {idlegroup} -t {topic}", want: []string{`{topic}\s+{name}\s+0\s+5\s+0\s+5`, `Consume Diff Total: 10`}},
	{line: "cloneGroupOffset -n {ns} -s {idlegroup} -d AdminGroup2 -t {topic}", want: []string{`clone group offset success. srcGroup\[{idlegroup}\], destGroup=\[AdminGroup2\], topic\[{topic}\]`}},
	{line: "consumerProgress -n {ns} -g AdminGroup2 -t {topic}", want: []string{`Consume Diff Total: 10`}},
	{line: "skipAccumulatedMessage -n {ns} -g {idlegroup} -t {topic}", want: []string{`{name}\s+0\s+5`, `{name}\s+1\s+5`}},
	{line: "consumerProgress -n {ns} -g {idlegroup} -t {topic}", want: []string{`Consume Diff Total: 0`}},

	// broker
	{line: "brokerStatus -n {ns} -b {broker}", want: []string{`(?m)^bootTimestamp\s+: \d+`, `(?m)^brokerVersionDesc\s+: V5_`, `(?m)^msgPutTotalTodayNow\s+: \d+`, `(?m)^commitLogMaxOffset\s+: \d+`, `(?m)^putTps\s+:`, `(?m)^runtime\s+:`, `(?m)^commitLogDiskRatio`}},
	{line: "brokerStatus -n {ns} -c DefaultCluster", want: []string{`{broker}\s+bootTimestamp`}},
	{line: "getBrokerConfig -n {ns} -b {broker}", want: []string{`={8,}{broker}={8,}`, `(?m)^brokerName\s+=\s+{name}`, `(?m)^flushDiskType\s+=\s+(A|)SYNC_FLUSH`, `(?m)^fileReservedTime\s+=\s+72`}},
	{line: "updateBrokerConfig -n {ns} -b {broker} -k maxMsgsNumBatch -v 63", want: []string{`update broker config success, {broker}`}},
	{line: "getBrokerConfig -n {ns} -c DefaultCluster", want: []string{`Master: {broker}`, `(?m)^maxMsgsNumBatch\s+=\s+63`}},
	{line: "cleanExpiredCQ -n {ns} -b {broker}", want: []string{`success`}},
	{line: "cleanUnusedTopic -n {ns} -b {broker}", want: []string{`success`}},
	{line: "deleteExpiredCommitLog -n {ns} -b {broker}", want: []string{`success`}},
	{line: "exportMetadata -n {ns} -c DefaultCluster -f {export}", want: []string{`export .*metadata.json success`}},
	{line: "exportConfigs -n {ns} -c DefaultCluster -f {export}", want: []string{`export .*configs.json success`}},
	{line: "exportMetrics -n {ns} -c DefaultCluster -f {export}", want: []string{`export .*metrics.json success`}},

	// removal
	{line: "deleteSubGroup -n {ns} -b {broker} -g AdminGroup", want: []string{`delete subscription group \[AdminGroup\] from broker \[{broker}\] success`}},
	{line: "deleteSubGroup -n {ns} -c DefaultCluster -g AdminGroup2 -r true", want: []string{`delete subscription group \[AdminGroup2\] from broker \[{broker}\] in cluster \[DefaultCluster\] success`}},
	{line: "deleteTopic -n {ns} -c DefaultCluster -t AdminMade", want: []string{`delete topic \[AdminMade\] from cluster \[DefaultCluster\] success`, `delete topic \[AdminMade\] from NameServer success`}},
	{line: "topicList -n {ns}", want: []string{`(?m)^AdminOrdered$`}, not: []string{`(?m)^AdminMade$`}},
}

// adminLeftOut are the other registered commands of 5.5.0, each with why it is not in the table.
var adminLeftOut = map[string]string{
	"createUser": later("access control"), "updateUser": later("access control"), "deleteUser": later("access control"),
	"getUser": later("access control"), "listUser": later("access control"), "copyUser": later("access control"),
	"createAcl": later("access control"), "updateAcl": later("access control"), "deleteAcl": later("access control"),
	"getAcl": later("access control"), "listAcl": later("access control"), "copyAcl": later("access control"),
	"getControllerMetaData": later("the Controller"), "getControllerConfig": later("the Controller"),
	"updateControllerConfig": later("the Controller"), "electMaster": later("the Controller"),
	"cleanBrokerMetadata": later("the Controller"), "getSyncStateSet": later("the Controller"),
	"getBrokerEpoch": later("epochs of a replicated log"), "resetMasterFlushOffset": later("replication"),
	"addBroker": "the broker container is not offered", "removeBroker": "the broker container is not offered",
	"exportMetadataInRocksDB": "no RocksDB here", "rocksDBConfigToJson": "no RocksDB here", "checkRocksdbCqWriteProgress": "no RocksDB here",
	"exportPopRecord": later("pop"), "setConsumeMode": later("pop"), "haStatus": later("replication"), "dumpCompactionLog": "compaction topics are not offered",
	"setCommitLogReadAheadMode": "advice about mapped files, of which there are none here",
	"getColdDataFlowCtrInfo":    "flow control of cold reads is not offered", "updateColdDataFlowCtrGroupConfig": "flow control of cold reads is not offered",
	"removeColdDataFlowCtrGroupConfig": "flow control of cold reads is not offered",
	"clusterRT":                        "never ends: it sends and prints until killed; checkMsgSendRT makes the same requests",
	"startMonitoring":                  "never ends: it watches until killed",
	"queryMsgTraceById":                "reads messages that a tracing client sends to RMQ_SYS_TRACE_TOPIC; queryMsgByKey makes the same request",
	"updateStaticTopic":                "static topics are not offered", "remappingStaticTopic": "static topics are not offered",
	"switchTimerEngine": later("timers"),
	"getBrokerLiteInfo": later("lite topics"), "getParentTopicInfo": later("lite topics"), "getLiteTopicInfo": later("lite topics"),
	"getLiteClientInfo": later("lite topics"), "getLiteGroupInfo": later("lite topics"), "triggerLiteDispatch": later("lite topics"),
}

func later(what string) string { return "comes with " + what }

// adminScene is what the commands meet: a topic with ten messages of known ids, a group that has consumed them and is
// connected, a group that is not, and a producer.
func adminScene(t *testing.T, c *cluster) map[string]string {
	t.Helper()
	const topic = "AdminTopic"
	createTopic(t, c, topic, 2)
	producerGroup, group := unique("adminproducer"), unique("admingroup")
	p := newProducer(t, c, producer.WithGroupName(producerGroup), producer.WithInstanceName(producerGroup), producer.WithQueueSelector(producer.NewManualQueueSelector()))
	values := map[string]string{
		"ns": c.nameServer, "nsport": c.nameServer[strings.LastIndexByte(c.nameServer, ':')+1:], "broker": c.broker, "name": c.brokerName,
		"topic": topic, "group": group, "producergroup": producerGroup, "idlegroup": "admin-idle", "othergroup": "admin-other",
		"export": filepath.Join(t.TempDir(), "export"),
	}
	for i := range 10 {
		m := newMessage(topic, fmt.Sprint("body-", i)).WithTag([]string{"TagA", "TagB"}[i%2]).WithKeys([]string{fmt.Sprint("admin-", i)})
		m.Queue = newQueue(topic, c.brokerName, i%2)
		r := send(t, p, m)
		if i == 0 {
			values["offsetid"], values["uniquekey"] = r.OffsetMsgID, r.MsgID
		}
	}
	var in inbox
	startConsumer(t, c, topic, "*", collect(&in), consumer.WithGroupName(group), consumer.WithInstance(group))
	eventually(t, 30*time.Second, "the ten come", func() bool { return in.len() == 10 })
	eventually(t, 30*time.Second, "their progress is stored", func() bool {
		for q := range 2 {
			a, err := invoke(t.Context(), c.broker, 14, map[string]string{"consumerGroup": group, "topic": topic, "queueId": fmt.Sprint(q)}, nil)
			if err != nil || a.Ext["offset"] != "5" {
				return false
			}
		}
		return true
	})
	a, err := invoke(t.Context(), c.broker, 38, map[string]string{"consumerGroup": group}, nil)
	require.NoError(t, err)
	id := regexp.MustCompile(`"([^"]*@[^"]*)"`).FindSubmatch(a.Body)
	require.NotNil(t, id, "client list %s", a.Body)
	values["client"] = string(id[1])
	values["producerclient"] = strings.Replace(values["client"], group, producerGroup, 1)

	createTopic(t, c, "%RETRY%admin-idle", 1)
	a, err = invoke(t.Context(), c.broker, 200, map[string]string{"group": "admin-idle"}, []byte(`{"groupName":"admin-idle","consumeEnable":true,"retryQueueNums":1,"retryMaxTimes":16}`))
	require.NoError(t, err)
	require.Zero(t, a.Code, a.Remark)
	for q := range 2 {
		a, err := invoke(t.Context(), c.broker, 15, map[string]string{"consumerGroup": "admin-idle", "topic": topic, "queueId": fmt.Sprint(q), "commitOffset": "3"}, nil)
		require.NoError(t, err)
		require.Zero(t, a.Code, a.Remark)
	}
	files := t.TempDir()
	for name, text := range map[string]string{
		"topicsfile": `[{"topicName":"AdminListed","readQueueNums":1,"writeQueueNums":1,"perm":6,"topicFilterType":"SINGLE_TAG"}]`,
		"groupsfile": `[{"groupName":"AdminListedGroup","consumeEnable":true,"retryQueueNums":1,"retryMaxTimes":16}]`,
	} {
		values[name] = filepath.Join(files, name)
		require.NoError(t, os.WriteFile(values[name], []byte(text), 0o600))
	}
	return values
}

func TestMQAdminAgainstTheBroker(t *testing.T) {
	peer := openJava(t, javapeer.V5)
	c := startCluster(t, map[string]string{"timerWheelEnable": "true"}) // without its timer the original cannot delete a topic
	values := adminScene(t, c)
	fill := func(s string, quote bool) string {
		for k, v := range values {
			if quote {
				v = regexp.QuoteMeta(v)
			}
			s = strings.ReplaceAll(s, "{"+k+"}", v)
		}
		return s
	}
	var stdin strings.Builder
	// The first requests of a JVM wait for class loading, and mqadmin gives up after 3 s: these are not looked at.
	stdin.WriteString(strings.Repeat(fill("topicList\t-n\t{ns}\n", false), adminWarmUp))
	for _, cmd := range adminCommands {
		line := strings.ReplaceAll(fill(cmd.line, false), " ", "\t")
		stdin.WriteString(strings.ReplaceAll(line, "{{_}}", " ") + "\n")
	}
	require.NoError(t, peer.Compile(t.Context(), t.TempDir(), "java/Admin.java"))
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	out, err := peer.Run(ctx, t.TempDir(), "Admin", []string{"-Djava.security.manager=allow"}, stdin.String())
	require.NoError(t, err)
	printed := splitAdmin(out)
	for i, cmd := range adminCommands {
		t.Run(fmt.Sprintf("%02d %s", i, cmd.line), func(t *testing.T) {
			got, ran := printed[i+adminWarmUp]
			require.True(t, ran, "the command was not run")
			require.Equal(t, cmd.fail, adminFailed.MatchString(got), got)
			for _, w := range cmd.want {
				require.Regexp(t, fill(w, true), got)
			}
			for _, n := range cmd.not {
				require.NotRegexp(t, fill(n, true), got)
			}
		})
	}
}

const adminWarmUp = 2

var adminFailed = regexp.MustCompile(`(?m)^(Caused by: )?[\w.]+Exception: `)

var adminMark = regexp.MustCompile(`(?ms)^BEGIN (\d+)\n(.*?)\nEND \d+ (-?\d+) \d+$`)

func splitAdmin(out string) map[int]string {
	printed := map[int]string{}
	for _, m := range adminMark.FindAllStringSubmatch(out, -1) {
		var n int
		if _, err := fmt.Sscan(m[1], &n); err == nil {
			printed[n] = m[2]
		}
	}
	return printed
}

// Every command that mqadmin 5.5.0 registers is in the table or in the list of what is left out.
func TestEveryMQAdminCommandIsRunOrExplained(t *testing.T) {
	peer := openJava(t, javapeer.V5)
	require.NoError(t, peer.Compile(t.Context(), t.TempDir(), "java/Admin.java"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := peer.Run(ctx, t.TempDir(), "Admin", []string{"-Djava.security.manager=allow"}, "\n")
	require.NoError(t, err)
	run := map[string]bool{}
	for _, cmd := range adminCommands {
		name, _, _ := strings.Cut(cmd.line, " ")
		run[name] = true
	}
	names := regexp.MustCompile(`(?m)^   (\w+)\s`).FindAllStringSubmatch(splitAdmin(out)[0], -1)
	require.Greater(t, len(names), 80, out)
	for _, n := range names {
		if !run[n[1]] && adminLeftOut[n[1]] == "" {
			t.Errorf("%s is neither run nor explained", n[1])
		}
	}
}
