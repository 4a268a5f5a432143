// Package embed starts NameServers and brokers inside a Go program. It is the one package of this module whose API is
// promised to others. Nodes listen on TCP or, with Config.Loopback, only inside the process; `quorate standalone` and the
// product's own servers are this package with other settings.
//
//	node, err := embed.Start(ctx, embed.Standalone(""))
//	if err != nil { … }
//	defer node.Stop()
//	connect(node.NameServers()) // "127.0.0.1:9876"
package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/quorate/quorate/broker"
	"github.com/quorate/quorate/internal/lifecycle"
	"github.com/quorate/quorate/namesrv"
	"github.com/quorate/quorate/remoting"
)

// ErrConfig is a configuration that is refused. Match with errors.Is.
var ErrConfig = errors.New("configuration refused")

// HostFromSettings leaves the addresses to listen on and to announce to the settings of each node, with RocketMQ's
// defaults: all addresses, and the first of this machine.
const HostFromSettings = "settings"

// Config says which nodes to start.
type Config struct {
	NameServers []NameServer
	Brokers     []Broker
	// Host is listened on and announced to clients; "" is 127.0.0.1.
	Host string
	// Loopback opens no port: only clients that dial with Node.Dial reach the nodes.
	Loopback bool
	// Logger gets what nodes have to say; nil discards it.
	Logger *slog.Logger
}

// NameServer is one NameServer.
type NameServer struct {
	// Port to listen on; 0 takes any that is free.
	Port int
	// Dir keeps what operators set (kvConfig.json); "" keeps it in memory.
	Dir string
	// Settings are RocketMQ's keys. Key and value are checked: see ErrConfig.
	Settings map[string]string
	// Origins say where a setting came from, for messages.
	Origins map[string]string
}

// Broker is one broker group with one broker.
type Broker struct {
	// Name of the broker, "" leaves it to Settings.
	Name string
	// Port to listen on, 0 takes any that is free; the fast port is two below. Negative leaves it to Settings.
	Port int
	// Dir is the store; "" leaves it to Settings. With Memory nothing is written to a disk.
	Dir    string
	Memory bool
	// NameServers to announce itself at, besides those of the same Config.
	NameServers []string
	// Settings are RocketMQ's keys. Key and value are checked: see ErrConfig.
	Settings map[string]string
	// Origins say where a setting came from, for messages.
	Origins map[string]string
	// ConfigFile keeps settings that operators change while the broker runs; "" forgets them at the next start.
	ConfigFile string
}

// Standalone is what `quorate standalone` runs: a NameServer and a broker that flushes every message before it says OK, on
// RocketMQ's ports of this machine. dir "" keeps everything in memory.
func Standalone(dir string) Config {
	b := Broker{Name: "broker-a", Port: 10911, Dir: dir, Memory: dir == "", Settings: map[string]string{"flushDiskType": "SYNC_FLUSH"}}
	return Config{NameServers: []NameServer{{Port: 9876, Dir: dir}}, Brokers: []Broker{b}}
}

// Node is a running set of NameServers and brokers. Safe for concurrent use.
type Node struct {
	nameServers []string
	brokers     []*broker.Broker
	loopback    *remoting.Loopback
	logger      *slog.Logger

	group  lifecycle.Group
	opened []func() error
	stop   context.CancelFunc
	done   chan struct{}
	err    error // of the run; set before done closes
}

// ports numbers the addresses of loopback nodes that ask for any port.
var ports atomic.Uint32

// firstLoopbackPort keeps those addresses apart from RocketMQ's own.
const firstLoopbackPort = 20000

// Start opens and starts all nodes and returns when a client would succeed: every broker is registered with the
// NameServers of cfg. ctx bounds the start only; the nodes run until Stop.
func Start(ctx context.Context, cfg Config) (_ *Node, err error) {
	if cfg.Host == "" {
		cfg.Host = "127.0.0.1"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{logger: cfg.Logger, group: lifecycle.Group{Logger: cfg.Logger}, done: make(chan struct{})}
	if cfg.Loopback {
		n.loopback = remoting.NewLoopback()
	}
	defer func() {
		if err != nil && n.stop == nil {
			err = errors.Join(err, n.close())
		}
	}()
	for _, ns := range cfg.NameServers {
		if err := n.openNameServer(ctx, cfg, ns); err != nil {
			return nil, fmt.Errorf("start NameServer: %w", err)
		}
	}
	for _, b := range cfg.Brokers {
		if err := n.openBroker(ctx, cfg, b); err != nil {
			return nil, fmt.Errorf("start broker: %w", err)
		}
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	go func() {
		n.err = errors.Join(n.group.Run(running), n.close())
		close(n.done)
	}()
	if len(cfg.NameServers) == 0 {
		return n, nil // whether and when foreign NameServers answer is their affair: see Registered
	}
	if err := n.Registered(ctx); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// Registered waits until every broker is known to a NameServer.
func (n *Node) Registered(ctx context.Context) error {
	for _, b := range n.brokers {
		select {
		case <-b.Ready():
		case <-n.done:
			return fmt.Errorf("stopped before broker %s was registered", b.Addr())
		case <-ctx.Done():
			return fmt.Errorf("broker %s is not registered: %w", b.Addr(), context.Cause(ctx))
		}
	}
	return nil
}

// Stop drains, flushes and closes all nodes, brokers first, and returns when they are gone. Further calls return the same.
func (n *Node) Stop() error {
	n.stop()
	<-n.done
	return n.err
}

// Done is closed when the nodes are gone, asked to or not; Stop then says why.
func (n *Node) Done() <-chan struct{} { return n.done }

// NameServers are the addresses of the NameServers.
func (n *Node) NameServers() []string { return n.nameServers }

// Brokers are the addresses that brokers announce.
func (n *Node) Brokers() []string {
	var addrs []string
	for _, b := range n.brokers {
		addrs = append(addrs, b.Addr())
	}
	return addrs
}

// BrokerNames are the names of the brokers, in the order of Brokers.
func (n *Node) BrokerNames() []string {
	var names []string
	for _, b := range n.brokers {
		names = append(names, b.Config().Identity.Name)
	}
	return names
}

// BrokerNameServers are the NameServers that the brokers announce themselves at.
func (n *Node) BrokerNameServers() []string {
	var addrs []string
	for _, b := range n.brokers {
		addrs = append(addrs, b.Config().Register.NameServers...)
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// Dial connects to a node: inside the process when it is on the loopback, else over TCP.
func (n *Node) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if n.loopback != nil {
		return n.loopback.Dial(ctx, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// close gives back what was opened, in reverse.
func (n *Node) close() error {
	var errs []error
	for _, giveBack := range slices.Backward(n.opened) {
		errs = append(errs, giveBack())
	}
	n.opened = nil
	return errors.Join(errs...)
}

// listen opens a port, or an address of the loopback.
func (n *Node) listen(ctx context.Context, host string, port int) (net.Listener, int, error) {
	if n.loopback != nil {
		if port == 0 {
			port = firstLoopbackPort + int(ports.Add(4)%40000)
		}
		l, err := n.loopback.Listen(net.JoinHostPort(host, strconv.Itoa(port)))
		return l, port, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, 0, err
	}
	if addr, ok := l.Addr().(*net.TCPAddr); ok {
		port = addr.Port
	}
	return l, port, nil
}

func (n *Node) dialer() remoting.Dialer {
	if n.loopback == nil {
		return nil
	}
	return n.loopback.Dial
}

func (n *Node) openNameServer(ctx context.Context, cfg Config, ns NameServer) error {
	c, tls, err := ns.config(cfg.Host, cfg.Logger)
	if err != nil {
		return err
	}
	c.Dial = n.dialer()
	if c.TLS, err = tls.Server(cfg.Logger); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if c.ClientTLS, err = tls.Client(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	l, port, err := n.listen(ctx, c.BindAddress, c.ListenPort)
	if err != nil {
		return err
	}
	n.opened = append(n.opened, func() error { return ignoreClosed(l.Close()) })
	s, err := namesrv.New(c, cfg.Logger)
	if err != nil {
		return err
	}
	n.nameServers = append(n.nameServers, net.JoinHostPort(reachable(c.BindAddress), strconv.Itoa(port)))
	n.group.Add("NameServer "+strconv.Itoa(port), func(ctx context.Context) error { return s.Run(ctx, l) })
	return nil
}

// reachable is an address by which this machine reaches a listener.
func reachable(bind string) string {
	if ip := net.ParseIP(bind); bind == "" || ip != nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return bind
}

// ignoreClosed drops the error of closing what its server has closed already.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (n *Node) openBroker(ctx context.Context, cfg Config, b Broker) error {
	c, tls, err := b.config(cfg.Host, n.nameServers, cfg.Logger)
	if err != nil {
		return err
	}
	deps := broker.Deps{Logger: cfg.Logger, Dial: n.dialer(), SaveConfig: b.save(), Unused: brokerUnused()}
	if deps.TLS, err = tls.Server(cfg.Logger); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if deps.ClientTLS, err = tls.Client(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	listeners, err := n.listenBroker(ctx, &c)
	if err != nil {
		return err
	}
	n.opened = append(n.opened, func() error { return ignoreClosed(listeners.Close()) })
	node, err := broker.New(c, deps)
	if err != nil {
		return err
	}
	n.opened = append(n.opened, node.Close)
	n.brokers = append(n.brokers, node)
	n.group.Add("broker "+node.Addr(), func(ctx context.Context) error { return node.Run(ctx, listeners) })
	return nil
}

// listenBroker opens the ports of a broker.
func (n *Node) listenBroker(ctx context.Context, c *broker.Config) (broker.Listeners, error) {
	if n.loopback == nil {
		return broker.Listen(ctx, c)
	}
	main, port, err := n.listen(ctx, c.Identity.IP1, c.Network.ListenPort)
	if err != nil {
		return broker.Listeners{}, err
	}
	c.Network.ListenPort = port
	fast, _, err := n.listen(ctx, c.Identity.IP1, port-2)
	if err != nil {
		return broker.Listeners{}, errors.Join(err, main.Close())
	}
	l := broker.Listeners{Main: main, Fast: fast}
	if !c.ListensForReplicas() {
		return l, nil
	}
	replicas := c.Network.HAListenPort
	if replicas == 0 {
		replicas = port + 1
	}
	if l.HA, c.Network.HAListenPort, err = n.listen(ctx, c.Identity.IP1, replicas); err != nil {
		return broker.Listeners{}, errors.Join(err, l.Close())
	}
	return l, nil
}
