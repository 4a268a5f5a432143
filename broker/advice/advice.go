// Package advice reads a broker's replication keys as an operator would wish somebody had: what they promise, what
// contradicts what, what has no effect, and what an upgrade changes silently. It decides nothing; it only says.
package advice

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/ha"
)

// Severity orders findings.
type Severity uint8

// Severities. An Error makes `quorate config lint` exit with 1; the broker itself starts all the same and says it.
const (
	Note Severity = iota
	Warning
	Error
)

// String is the word in front of a finding.
func (s Severity) String() string { return [...]string{"note", "warning", "error"}[s] }

// Finding is one thing to know about a configuration.
type Finding struct {
	Severity Severity
	Key      string // the key to look at
	Text     string // what is so, and what it means
	Remedy   string // the line or lines that change it; empty when nothing has to
}

// Keys are the keys of broker.conf that decide about replication, with RocketMQ's defaults where a file is silent.
type Keys struct {
	BrokerRole              string
	FlushDiskType           string
	TotalReplicas           int
	InSyncReplicas          int
	MinInSyncReplicas       int
	AutoInSyncReplicas      bool
	AllAckInSyncStateSet    bool
	SlaveActingMaster       bool
	ControllerMode          bool
	MaxGapNotInSync         int64
	SlaveTimeoutMillis      int // 0: unset
	ReplicaAck              string
	DLedger                 bool
	HaSlaveFallbehindMaxSet bool // the file names the retired key
	GapSet                  bool // the file names haMaxGapNotInSync
}

// Defaults are RocketMQ's.
func Defaults() Keys {
	return Keys{
		BrokerRole: "ASYNC_MASTER", FlushDiskType: "ASYNC_FLUSH", TotalReplicas: 1, InSyncReplicas: 1, MinInSyncReplicas: 1,
		MaxGapNotInSync: 256 << 20, ReplicaAck: "received",
	}
}

// docGap is the default that RocketMQ's documentation states; its source says 256 MiB.
const docGap = 256 << 10

// clientTimeoutMillis is when a default client gives up on a send.
const clientTimeoutMillis = 3000

// Lint returns what an operator should know about k, gravest first within each topic.
func Lint(k Keys) []Finding {
	var all []Finding
	add := func(s Severity, key, remedy, format string, args ...any) {
		all = append(all, Finding{Severity: s, Key: key, Text: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	if k.DLedger {
		add(Error, "enableDLegerCommitLog", "enableDLegerCommitLog=false",
			"DLedger's CommitLog is another format that this broker does not write; move the group to Controller mode")
	}
	if k.HaSlaveFallbehindMaxSet {
		add(Warning, "haSlaveFallbehindMax", "haMaxGapNotInSync=268435456",
			"haSlaveFallbehindMax is retired and its value is not used; haMaxGapNotInSync replaces it")
	}
	lintCounts(k, add)
	lintSwitches(k, add)
	if k.GapSet && k.MaxGapNotInSync == docGap {
		add(Note, "haMaxGapNotInSync", "", "262144 is the default of RocketMQ's documentation; its source has 268435456. "+
			"With the small value a replica counts as out of sync at 256 KiB: fast to degrade, and sends fail at peaks where nothing may degrade")
	}
	if k.SlaveTimeoutMillis >= clientTimeoutMillis {
		add(Warning, "slaveTimeout", "slaveTimeout=2700",
			"a default client gives up after %d ms and would never see the status FLUSH_SLAVE_TIMEOUT of a send that waits %d ms", clientTimeoutMillis, k.SlaveTimeoutMillis)
	}
	all = append(all, Finding{Severity: Note, Key: "inSyncReplicas", Text: Effective(k)})
	return all
}

type adder func(s Severity, key, remedy, format string, args ...any)

func lintCounts(k Keys, add adder) {
	if k.InSyncReplicas > k.TotalReplicas {
		add(Error, "inSyncReplicas", fmt.Sprintf("totalReplicas=%d", k.InSyncReplicas),
			"inSyncReplicas=%d is more than totalReplicas=%d: %s", k.InSyncReplicas, k.TotalReplicas, cannotBeMet(k))
	}
	if k.MinInSyncReplicas > k.InSyncReplicas {
		effect := "minInSyncReplicas has no effect here"
		switch {
		case k.ControllerMode:
			effect = fmt.Sprintf("sends are refused while the sync-state set has fewer than %d members", k.MinInSyncReplicas)
		case k.SlaveActingMaster && k.AutoInSyncReplicas:
			effect = fmt.Sprintf("every send needs %d copies, not %d", k.MinInSyncReplicas, k.InSyncReplicas)
		}
		add(Error, "minInSyncReplicas", fmt.Sprintf("minInSyncReplicas=%d", k.InSyncReplicas),
			"minInSyncReplicas=%d is more than inSyncReplicas=%d: %s", k.MinInSyncReplicas, k.InSyncReplicas, effect)
	}
}

func cannotBeMet(k Keys) string {
	if k.SlaveActingMaster {
		return "sends are refused unless more replicas are alive than the group is said to have"
	}
	return "sends time out with FLUSH_SLAVE_TIMEOUT unless more replicas follow than the group is said to have"
}

func lintSwitches(k Keys, add adder) {
	static := !k.ControllerMode
	if static && k.BrokerRole == "ASYNC_MASTER" && k.InSyncReplicas > 1 {
		add(Warning, "brokerRole", "brokerRole=SYNC_MASTER",
			"brokerRole is ASYNC_MASTER, which never waits for a replica: inSyncReplicas=%d has no effect", k.InSyncReplicas)
	}
	if static && k.BrokerRole == "SYNC_MASTER" && k.InSyncReplicas == 1 {
		add(Warning, "inSyncReplicas", "totalReplicas=2\ninSyncReplicas=2",
			"SYNC_MASTER with inSyncReplicas=1 waits for no replica: one copy is enough for an OK since RocketMQ 5")
	}
	if k.AutoInSyncReplicas && (!k.SlaveActingMaster || k.ControllerMode) {
		add(Error, "enableAutoInSyncReplicas", "enableSlaveActingMaster=true",
			"enableAutoInSyncReplicas has no effect without enableSlaveActingMaster%s", map[bool]string{true: ", and none in Controller mode"}[k.ControllerMode])
	}
	if k.AllAckInSyncStateSet && static {
		add(Warning, "allAckInSyncStateSet", "", "allAckInSyncStateSet has no effect outside Controller mode")
	}
	if k.ControllerMode && k.SlaveActingMaster {
		add(Note, "enableSlaveActingMaster", "", "in Controller mode the Controller's rules decide; enableSlaveActingMaster decides nothing about acknowledgements")
	}
	if k.ControllerMode && strings.EqualFold(k.ReplicaAck, "received") {
		add(Error, "replicaAck", "replicaAck=durable", "Controller mode acknowledges only what replicas have fsynced: the broker refuses to start with replicaAck=received")
	}
}

// Effective says in one line what an OK means under k.
func Effective(k Keys) string {
	own := "the master's memory"
	if strings.EqualFold(k.FlushDiskType, "SYNC_FLUSH") {
		own = "the master's disk"
	}
	policy := k.policy()
	need := max(k.InSyncReplicas, 1)
	switch {
	case !k.ControllerMode && k.BrokerRole != "SYNC_MASTER", need == 1 && !policy.AllInSyncSet:
		return "effective: an OK means " + own
	case policy.AllInSyncSet:
		return fmt.Sprintf("effective: every member of the sync-state set; refused below %d members", max(k.MinInSyncReplicas, 1))
	case policy.Mode == ha.ActingQuorum && policy.AutoInSync:
		return fmt.Sprintf("effective: master + any %d; may fall to %s", need-1, fall(min(k.MinInSyncReplicas, need)))
	case policy.Mode == ha.ActingQuorum:
		return fmt.Sprintf("effective: master + any %d; sends are refused when fewer are in sync", need-1)
	case policy.Mode == ha.ControllerQuorum:
		return fmt.Sprintf("effective: master + any %d of the sync-state set; refused below %d members", need-1, max(k.MinInSyncReplicas, 1))
	default:
		return fmt.Sprintf("effective: master + any %d; sends time out when fewer follow", need-1)
	}
}

func fall(floor int) string {
	if floor <= 1 {
		return "master only"
	}
	return fmt.Sprintf("master + any %d", floor-1)
}

func (k Keys) policy() ha.QuorumPolicy {
	p := ha.QuorumPolicy{
		InSyncReplicas: k.InSyncReplicas, MinInSync: k.MinInSyncReplicas, AutoInSync: k.AutoInSyncReplicas, MaxGapNotInSync: k.MaxGapNotInSync,
	}
	switch {
	case k.ControllerMode:
		p.Mode, p.AllInSyncSet = ha.ControllerQuorum, k.AllAckInSyncStateSet
	case k.SlaveActingMaster:
		p.Mode = ha.ActingQuorum
	}
	return p
}

// Upgrade says what changes when a broker that ran under RocketMQ 4 runs under the rules of 5 with the same file.
func Upgrade(k Keys, fourX bool) []Finding {
	if !fourX || k.ControllerMode || k.BrokerRole != "SYNC_MASTER" || k.InSyncReplicas > 1 {
		return nil
	}
	return []Finding{{
		Severity: Warning, Key: "inSyncReplicas",
		Text: "under RocketMQ 4 this SYNC_MASTER answered OK when a replica had the message as well; under 5 inSyncReplicas=1 " +
			"decides and one copy is enough. The role still says SYNC_MASTER, and nothing else tells",
		Remedy: "totalReplicas=2\ninSyncReplicas=2\n" +
			"# a group of three, any one replica as RocketMQ 4 waited for:  totalReplicas=3  inSyncReplicas=2\n" +
			"# a group of three, every replica:                             totalReplicas=3  inSyncReplicas=3",
	}}
}
