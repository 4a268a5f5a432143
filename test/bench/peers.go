package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/javapeer"
	"github.com/quorate/quorate/test/process"
)

// system is something that can be loaded: the product, the ceiling, or a peer.
type system interface {
	// Letter is what ratios call it: P the product, C the ceiling, J the Java broker, N NATS JetStream.
	Letter() string
	PIDs() []int
	// Send loads it with requests of body bytes each, batch messages per request.
	Send(ctx context.Context, shape load.Shape, body, batch int, d time.Duration) (load.Result, error)
	Stop() error
}

const (
	stopGrace    = 20 * time.Second
	sendTopic    = "BenchmarkTest"
	sendQueues   = 4
	bootTimeout  = 2 * time.Minute
	javaWarmUp   = 20 * time.Second
	javaWarmStep = 5 * time.Second
)

// remotingSystem is the product or the Java broker: the same bytes drive both.
type remotingSystem struct {
	letter     string
	broker     string
	nameServer string
	main       *process.Process
	others     []*process.Process
	standalone *process.Standalone // the product alone
	data       string
}

func (s *remotingSystem) Letter() string { return s.letter }

func (s *remotingSystem) PIDs() []int { return []int{s.main.PID()} }

func (s *remotingSystem) Send(ctx context.Context, shape load.Shape, body, batch int, d time.Duration) (load.Result, error) {
	return load.Run(ctx, s.broker, shape, d, func(i int) load.Codec {
		return load.NewSend(load.Send{Topic: sendTopic, Queues: sendQueues, Body: body, Batch: batch, Group: i})
	})
}

func (s *remotingSystem) Stop() error {
	err := s.main.Stop(stopGrace)
	for _, p := range s.others {
		if e := p.Stop(stopGrace); err == nil {
			err = e
		}
	}
	return err
}

func flushType(sync bool) string {
	if sync {
		return "SYNC_FLUSH"
	}
	return "ASYNC_FLUSH"
}

// startProduct starts `quorate standalone` on an empty folder under dir.
func startProduct(ctx context.Context, binary, dir string, sync bool, set map[string]string) (*remotingSystem, error) {
	keys := map[string]string{"flushDiskType": flushType(sync)}
	for k, v := range set {
		keys[k] = v
	}
	data := filepath.Join(dir, "quorate-"+flushType(sync))
	s, err := process.StartStandalone(ctx, process.StandaloneConfig{Binary: binary, Data: data, Set: keys, Log: filepath.Join(dir, "quorate.log")})
	if err != nil {
		return nil, err
	}
	return &remotingSystem{letter: "P", broker: s.Broker, nameServer: s.NameServer, main: s.Process, standalone: s, data: data}, nil
}

// startJava starts NameServer and broker, and warms the broker up at 4×64: an unwarmed one says nothing.
func startJava(ctx context.Context, peer *javapeer.Peer, dir string, sync bool) (*remotingSystem, error) {
	ns, err := peer.StartNameServer(ctx, filepath.Join(dir, "java-ns"))
	if err != nil {
		return nil, err
	}
	set := map[string]string{
		"flushDiskType": flushType(sync), "mappedFileSizeCommitLog": "1073741824", "mappedFileSizeConsumeQueue": "6000000",
		"maxMessageSize": "4194304", "maxHashSlotNum": "5000000", "maxIndexNum": "20000000", "defaultTopicQueueNums": "8",
		// It refuses what has waited longer than this, which on a machine shared with the load is the compiler's fault.
		"waitTimeMillsInSendQueue": "3000",
	}
	b, err := peer.StartBroker(ctx, javapeer.BrokerConfig{Dir: filepath.Join(dir, "java-"+flushType(sync)), NameServer: ns.Addr, Set: set, Measure: true})
	if err != nil {
		return nil, err
	}
	s := &remotingSystem{letter: "J", broker: b.Addr, nameServer: ns.Addr, main: b.Process, others: []*process.Process{ns.Process}}
	for warm := time.Duration(0); warm < javaWarmUp; warm += javaWarmStep {
		if _, err := s.Send(ctx, load.Shape{Connections: 4, Window: 64}, 1024, 1, javaWarmStep); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// childSystem is a server of this program's own, started as another process so that its CPU is counted apart.
type childSystem struct {
	letter string
	cmd    *exec.Cmd
	addr   string
	send   func(ctx context.Context, addr string, shape load.Shape, body int, d time.Duration) (load.Result, error)
}

func (s *childSystem) Letter() string { return s.letter }

func (s *childSystem) PIDs() []int { return []int{s.cmd.Process.Pid} }

func (s *childSystem) Send(ctx context.Context, shape load.Shape, body, _ int, d time.Duration) (load.Result, error) {
	return s.send(ctx, s.addr, shape, body, d)
}

func (s *childSystem) Stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// startChild runs this program again with args; the child prints its address in its first line.
func startChild(letter string, args []string) (*childSystem, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s printed no address: %w", strings.Join(args, " "), err)
	}
	return &childSystem{letter: letter, cmd: cmd, addr: strings.TrimSpace(line)}, nil
}

func startCeiling(dir string, sync bool) (*childSystem, error) {
	s, err := startChild("C", []string{"ceiling", "-file", filepath.Join(dir, "ceiling-"+flushType(sync)), fmt.Sprintf("-flush=%v", sync)})
	if err != nil {
		return nil, err
	}
	s.send = func(ctx context.Context, addr string, shape load.Shape, body int, d time.Duration) (load.Result, error) {
		return load.Run(ctx, addr, shape, d, func(int) load.Codec { return &load.Ceiling{Body: body} })
	}
	return s, nil
}

func startNATS(dir string, sync bool) (*childSystem, error) {
	s, err := startChild("N", []string{"nats", "-dir", filepath.Join(dir, "nats-"+flushType(sync)), fmt.Sprintf("-always=%v", sync)})
	if err != nil {
		return nil, err
	}
	s.send = publishNATS
	return s, nil
}
