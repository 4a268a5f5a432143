package namesrv

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/remoting"
)

// Config configures a NameServer. Keys and defaults are RocketMQ's (NamesrvConfig, NettyServerConfig) unless a comment
// says they are ours.
type Config struct {
	ListenPort      int           `conf:"listenPort,important" bounds:"0..65535"`
	BindAddress     string        `conf:"bindAddress"`
	IdleTimeout     time.Duration `conf:"serverChannelMaxIdleTimeSeconds,s" bounds:"1..86400"`
	KVConfigPath    string        `conf:"kvConfigPath,important"`    // "": key-value settings live in memory only
	ConfigStorePath string        `conf:"configStorePath,important"` // where changes made at run time are kept; "": nowhere
	ProductEnvName  string        `conf:"productEnvName"`            // shown, and nothing else

	Reloadable

	// Bounds, ours.
	BrokersMax      int `conf:"namesrvBrokersMax" bounds:"1..1000000"`
	TopicsMax       int `conf:"namesrvTopicsMax" bounds:"1..10000000"`
	KVEntriesMax    int `conf:"namesrvKVEntriesMax" bounds:"0..10000000"`
	ConnectionsMax  int `conf:"namesrvConnectionsMax" bounds:"1..1000000"`
	NoticesQueueMax int `conf:"namesrvNoticesQueueMax" bounds:"1..1000000"` // notices of a new lowest broker id not yet sent

	Limits    remoting.Limits     // zero fields are remoting's defaults
	TLS       *remoting.TLSMode   // nil: plaintext
	ClientTLS *remoting.ClientTLS // towards brokers, for notices
	Dial      remoting.Dialer     // towards brokers; nil is TCP
	FS        vfs.FS              // nil is the operating system's
}

// Reloadable is what UPDATE_NAMESRV_CONFIG may change: every key outside of it is refused, whatever it is.
type Reloadable struct {
	ScanInterval                 time.Duration `conf:"scanNotActiveBrokerInterval,ms" bounds:"100..600000"`
	SupportActingMaster          bool          `conf:"supportActingMaster"`
	NotifyMinBrokerIDChanged     bool          `conf:"notifyMinBrokerIdChanged"`
	OrderMessageEnable           bool          `conf:"orderMessageEnable"`
	ReturnOrderTopics            bool          `conf:"returnOrderTopicConfigToBroker"`
	EnableAllTopicList           bool          `conf:"enableAllTopicList"`
	EnableTopicList              bool          `conf:"enableTopicList"`
	DeleteTopicsWithRegistration bool          `conf:"deleteTopicWithBrokerRegistration"`
	NeedWaitForService           bool          `conf:"needWaitForService"`
	WaitForService               time.Duration `conf:"waitSecondsForService,s" bounds:"0..3600"`
}

// DefaultConfig returns RocketMQ's defaults.
func DefaultConfig() Config {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "." // no home: beside the process, as relative paths are
	}
	return Config{
		ListenPort: 9876, BindAddress: "0.0.0.0", IdleTimeout: 120 * time.Second,
		KVConfigPath:    filepath.Join(home, "namesrv", "kvConfig.json"),
		ConfigStorePath: filepath.Join(home, "namesrv", "namesrv.properties"),
		ProductEnvName:  "center",
		Reloadable: Reloadable{
			ScanInterval: 5 * time.Second, ReturnOrderTopics: true, EnableAllTopicList: true, EnableTopicList: true,
			WaitForService: 45 * time.Second,
		},
		BrokersMax: 10_000, TopicsMax: 1_000_000, KVEntriesMax: 100_000, ConnectionsMax: 50_000, NoticesQueueMax: 4096,
	}
}

// UnusedKeys are keys of RocketMQ's NameServer that have no effect here, with the reason.
var UnusedKeys = map[string]string{
	"clusterTest":                          "test deployments of the product's authors",
	"enableControllerInNamesrv":            "the Controller is a role of its own",
	"clientRequestThreadPoolNums":          threads,
	"clientRequestThreadPoolQueueCapacity": threads,
	"defaultThreadPoolNums":                threads,
	"defaultThreadPoolQueueCapacity":       threads,
	"unRegisterBrokerQueueCapacity":        "a broker that leaves is removed at once, not queued",
	"serverWorkerThreads":                  threads,
	"serverSelectorThreads":                threads,
	"serverCallbackExecutorThreads":        threads,
	"serverNettyWorkerGroupEnable":         netty,
	"serverPooledByteBufAllocatorEnable":   netty,
	"useEpollNativeSelector":               netty,
	"serverOnewaySemaphoreValue":           "requests at work are bounded by class",
	"serverAsyncSemaphoreValue":            "requests at work are bounded by class",
	"serverSocketSndBufSize":               "the system sizes socket buffers",
	"serverSocketRcvBufSize":               "the system sizes socket buffers",
	"serverSocketBacklog":                  "the system's limit applies",
	"writeBufferHighWaterMark":             "answers that wait are bounded in bytes per connection",
	"writeBufferLowWaterMark":              "answers that wait are bounded in bytes per connection",
	"enableShutdownGracefully":             "a stop always drains",
	"shutdownWaitTimeSeconds":              "a stop always drains",
	"configBlackList":                      "what may change at run time is an allow-list",
	"rocketmqHome":                         "nothing is read from there",
}

const (
	threads = "there are no thread pools to size"
	netty   = "there is no Netty"
)

// Validate reports relations between settings that cannot work.
func (c Config) Validate() error {
	for key, n := range map[string]int{
		"namesrvBrokersMax": c.BrokersMax, "namesrvTopicsMax": c.TopicsMax, "namesrvNoticesQueueMax": c.NoticesQueueMax,
	} {
		if n < 1 {
			return fmt.Errorf("%s: %d must be at least 1", key, n)
		}
	}
	if c.ScanInterval <= 0 {
		return fmt.Errorf("scanNotActiveBrokerInterval: %v must be positive", c.ScanInterval)
	}
	if c.KVConfigPath != "" && c.KVConfigPath == c.ConfigStorePath {
		return fmt.Errorf("kvConfigPath and configStorePath are the same file %s", c.KVConfigPath)
	}
	return nil
}
