// Package topic holds the broker's topic table, its persistence (config/topics.json) and the requests about topics.
package topic

// Config is one topic's configuration (RocketMQ TopicConfig); JSON names are the wire's.
type Config struct {
	Name        string            `json:"topicName"`
	ReadQueues  int32             `json:"readQueueNums"`
	WriteQueues int32             `json:"writeQueueNums"`
	Perm        int32             `json:"perm"`
	FilterType  string            `json:"topicFilterType"`
	SysFlag     int32             `json:"topicSysFlag"`
	Order       bool              `json:"order"`
	Attributes  map[string]string `json:"attributes"`
}

// Table is safe for concurrent use. A *Config handed out is immutable: changes replace it.
type Table struct{}

// Lookup finds a topic by name bytes without allocating; nil when unknown.
func (t *Table) Lookup(name []byte) *Config { panic("unbuilt") }

// Get finds a topic; nil when unknown.
func (t *Table) Get(name string) *Config { panic("unbuilt") }

// CreateOnSend makes a topic from its template as a send does (PROTOCOL §3.1), persists it before it returns and announces it; nil with reason when it may not.
func (t *Table) CreateOnSend(name, template string, queues int32, sysFlag int32) (*Config, error) {
	panic("unbuilt")
}

// Ensure makes an internal topic (retry, dead letter, system) if it is missing.
func (t *Table) Ensure(c Config) (*Config, error) { panic("unbuilt") }

// Put creates or replaces; Delete removes. Both persist before they return.
func (t *Table) Put(c Config) error       { panic("unbuilt") }
func (t *Table) Delete(name string) error { panic("unbuilt") }

// All returns a snapshot.
func (t *Table) All() []*Config { panic("unbuilt") }
