package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"time"
)

// readyLine is what `quorate standalone` prints when a client would succeed.
const readyLine = "Ready in "

// Standalone is a running `quorate standalone`.
type Standalone struct {
	*Process
	NameServer string // host:port
	Broker     string // host:port
	Data       string
	Ready      time.Duration // from exec to the ready line
	spec       Spec
}

// StandaloneConfig says how to start one.
type StandaloneConfig struct {
	Binary string
	Data   string
	Set    map[string]string // broker keys, or namesrv.KEY
	Args   []string          // more flags
	Env    map[string]string
	Log    string
	// Wrapper is a program and its arguments put before the binary, such as strace.
	Wrapper []string
}

// StartStandalone starts NameServer and broker in one process on free ports and waits until a client would succeed.
func StartStandalone(ctx context.Context, cfg StandaloneConfig) (*Standalone, error) {
	nsPort, err := FreeBrokerPort()
	if err != nil {
		return nil, err
	}
	brokerPort, err := FreeBrokerPort()
	if err != nil {
		return nil, err
	}
	args := []string{
		"standalone", "--data", cfg.Data, "--namesrv-port", strconv.Itoa(nsPort), "--broker-port", strconv.Itoa(brokerPort),
		"--console-port", "0",
	}
	keys := make([]string, 0, len(cfg.Set))
	for k := range cfg.Set {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		args = append(args, "--set", k+"="+cfg.Set[k])
	}
	args = append(args, cfg.Args...)
	spec := Spec{Name: "quorate standalone", Path: cfg.Binary, Args: args, Env: cfg.Env, Log: cfg.Log}
	if len(cfg.Wrapper) > 0 {
		spec.Path = cfg.Wrapper[0]
		spec.Args = append(append(append([]string{}, cfg.Wrapper[1:]...), cfg.Binary), args...)
	}
	s := &Standalone{NameServer: Loopback(nsPort), Broker: Loopback(brokerPort), Data: cfg.Data, spec: spec}
	return s, s.start(ctx)
}

// Restart starts the same command on the same ports and data again; the former process must have ended.
func (s *Standalone) Restart(ctx context.Context) error { return s.start(ctx) }

func (s *Standalone) start(ctx context.Context) error {
	began := time.Now()
	p, err := Start(s.spec)
	if err != nil {
		return err
	}
	s.Process = p
	if err := p.WaitOutput(ctx, readyLine); err != nil {
		p.Kill()
		return err
	}
	s.Ready = time.Since(began)
	return nil
}

// StartNameServer starts `quorate namesrv` on a free port.
func StartNameServer(ctx context.Context, binary, dir string) (*Process, string, error) {
	port, err := FreeBrokerPort()
	if err != nil {
		return nil, "", err
	}
	conf := filepath.Join(dir, "namesrv.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "listenPort=%d\n", port), 0o600); err != nil {
		return nil, "", fmt.Errorf("write namesrv.conf: %w", err)
	}
	p, err := Start(Spec{Name: "quorate namesrv", Path: binary, Args: []string{"namesrv", "-c", conf}, Env: map[string]string{"HOME": dir}})
	if err != nil {
		return nil, "", err
	}
	addr := Loopback(port)
	if err := p.WaitFor(ctx, "listen on "+addr, func() bool { return Answers(addr) }); err != nil {
		p.Kill()
		return nil, "", err
	}
	return p, addr, nil
}

// StartBroker starts `quorate broker -c` with a configuration file and waits until it accepts connections at addr.
func StartBroker(ctx context.Context, binary, conf, nameServer, addr string) (*Process, error) {
	p, err := Start(Spec{Name: "quorate broker", Path: binary, Args: []string{"broker", "-c", conf, "-n", nameServer}})
	if err != nil {
		return nil, err
	}
	if err := p.WaitFor(ctx, "listen on "+addr, func() bool { return Answers(addr) }); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}
