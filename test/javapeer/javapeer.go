// Package javapeer runs the original product, Apache RocketMQ from Maven, as a peer to test against and to measure
// beside: NameServer, broker and small Java programs on its class path. Jars are resolved once into the user's cache
// folder; nothing of them enters the repository.
package javapeer

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/test/process"
)

// Versions that the tests meet. V5 is the one that ratios are measured against.
const (
	V5 = "5.5.0"
	V4 = "4.9.7"
)

//go:embed pom-5.5.0.xml pom-4.9.7.xml
var poms embed.FS

// access opens what the store reaches for by reflection on JDK 17.
var access = []string{
	"--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED",
	"--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED",
}

// Small heaps and the first compiler tier: a test's server starts faster and lives briefly.
var (
	small   = append([]string{"-Xms64m", "-Xmx256m", "-XX:MaxDirectMemorySize=256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, access...)
	measure = append([]string{"-Xms2g", "-Xmx2g", "-XX:MaxDirectMemorySize=512m", "-XX:+UseG1GC"}, access...)
)

// Missing says why the Java peer cannot run here, or returns "".
func Missing() string {
	for _, program := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	return ""
}

// Peer is one version of RocketMQ, ready to run.
type Peer struct {
	Version string
	lib     string
	home    string // ROCKETMQ_HOME
	classes string // compiled test programs
}

// Open resolves the jars of a version, from the cache when they are there.
func Open(ctx context.Context, version string) (*Peer, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("java peer: %w", err)
	}
	root := filepath.Join(cache, "quorate-test", "rocketmq-"+version)
	p := &Peer{Version: version, lib: filepath.Join(root, "lib"), home: filepath.Join(root, "home")}
	if err := p.prepareHome(); err != nil {
		return nil, err
	}
	whole := filepath.Join(root, "whole") // written last: a cache that was cut short is resolved again
	if _, err := os.Stat(whole); err == nil {
		return p, nil
	}
	pom, err := poms.ReadFile("pom-" + version + ".xml")
	if err != nil {
		return nil, fmt.Errorf("java peer %s: %w", version, err)
	}
	pomFile := filepath.Join(root, "pom.xml")
	if err := os.WriteFile(pomFile, pom, 0o600); err != nil {
		return nil, fmt.Errorf("java peer %s: %w", version, err)
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", pomFile, "dependency:copy-dependencies", "-DoutputDirectory="+p.lib)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("java peer %s: maven: %w\n%s", version, err, out)
	}
	return p, os.WriteFile(whole, nil, 0o600)
}

// prepareHome makes the folder ROCKETMQ_HOME must name; 4.x reads its log set-up from there, and 5.x leaves it alone.
func (p *Peer) prepareHome() error {
	conf := filepath.Join(p.home, "conf")
	if err := os.MkdirAll(conf, 0o700); err != nil {
		return fmt.Errorf("java peer home: %w", err)
	}
	for _, name := range []string{"logback_namesrv.xml", "logback_broker.xml", "logback_tools.xml"} {
		if err := os.WriteFile(filepath.Join(conf, name), []byte("<configuration/>\n"), 0o600); err != nil {
			return fmt.Errorf("java peer home: %w", err)
		}
	}
	return nil
}

// Compile compiles Java sources against the jars, into dir, for Run.
func (p *Peer) Compile(ctx context.Context, dir string, sources ...string) error {
	args := append([]string{"-nowarn", "-encoding", "UTF-8", "-cp", p.lib + "/*", "-d", dir}, sources...)
	cmd := exec.CommandContext(ctx, "javac", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("javac: %w\n%s", err, out)
	}
	p.classes = dir
	return nil
}

// Spec runs a main class of the jars or of what Compile made. options are JVM options; dir is its user.home.
func (p *Peer) Spec(dir, class string, options []string, args ...string) process.Spec {
	path := p.lib + "/*"
	if p.classes != "" {
		path = p.classes + ":" + path
	}
	all := append([]string{}, small...)
	all = append(all, "-Duser.home="+dir, "-Drocketmq.client.logUseSlf4j=false")
	all = append(all, options...)
	all = append(all, "-cp", path, class)
	return process.Spec{
		Name: "java " + class, Path: "java", Args: append(all, args...), Dir: dir,
		Env: map[string]string{"ROCKETMQ_HOME": p.home},
	}
}

// Run runs a main class to its end and returns what it printed on standard output.
func (p *Peer) Run(ctx context.Context, dir, class string, options []string, stdin string, args ...string) (string, error) {
	spec := p.Spec(dir, class, options, args...)
	cmd := exec.CommandContext(ctx, spec.Path, spec.Args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ROCKETMQ_HOME="+p.home)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("java %s: %w\n%s\n%s", class, err, out, stderr.String())
	}
	return string(out), nil
}

// Server is a running Java NameServer or broker.
type Server struct {
	*process.Process
	Addr string
	spec process.Spec
}

// Restart starts the same command again; the former process must have ended.
func (s *Server) Restart(ctx context.Context) error { return s.start(ctx) }

func (s *Server) start(ctx context.Context) error {
	p, err := process.Start(s.spec)
	if err != nil {
		return err
	}
	s.Process = p
	if err := p.WaitFor(ctx, "listen on "+s.Addr, func() bool { return process.Answers(s.Addr) }); err != nil {
		p.Kill()
		return err
	}
	return nil
}

// StartNameServer starts a NameServer on a free port with its files under dir; options are JVM options.
func (p *Peer) StartNameServer(ctx context.Context, dir string, options ...string) (*Server, error) {
	port, err := process.FreeBrokerPort()
	if err != nil {
		return nil, err
	}
	conf, err := writeConf(dir, "namesrv.conf", map[string]string{"listenPort": strconv.Itoa(port)})
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: process.Loopback(port), spec: p.Spec(dir, "org.apache.rocketmq.namesrv.NamesrvStartup", options, "-c", conf)}
	return s, s.start(ctx)
}

// BrokerConfig says how a broker is started.
type BrokerConfig struct {
	Dir        string // everything of this broker; the store is Dir/store
	NameServer string
	Port       int               // 0: a free one
	Set        map[string]string // configuration keys on top of SmallBroker's
	Measure    bool              // the big heap and G1, for figures
	Options    []string          // JVM options
}

// StartBroker starts a broker that listens when this returns; the NameServer may know it up to 10 s later.
func (p *Peer) StartBroker(ctx context.Context, cfg BrokerConfig) (*Server, error) {
	if cfg.Port == 0 {
		var err error
		if cfg.Port, err = process.FreeBrokerPort(); err != nil {
			return nil, err
		}
	}
	conf, err := WriteBrokerConf(cfg.Dir, cfg.NameServer, cfg.Port, cfg.Set)
	if err != nil {
		return nil, err
	}
	spec := p.Spec(cfg.Dir, "org.apache.rocketmq.broker.BrokerStartup", cfg.Options, "-c", conf)
	if cfg.Measure {
		spec = p.Spec(cfg.Dir, "org.apache.rocketmq.broker.BrokerStartup", measured(cfg.Options), "-c", conf)
	}
	s := &Server{Addr: process.Loopback(cfg.Port), spec: spec}
	return s, s.start(ctx)
}

// measured are the options for figures; the last of two that contradict each other holds.
func measured(options []string) []string {
	return append(append([]string{"-XX:-UseSerialGC", "-XX:TieredStopAtLevel=4"}, measure...), options...)
}

// SmallBroker is a broker.conf of small files, so that a short test rolls segments and fills an index. The keys and
// their meaning are RocketMQ's; both products are started with them.
func SmallBroker(store, nameServer string, port int) map[string]string {
	return map[string]string{
		"brokerClusterName": "DefaultCluster", "brokerName": "broker-fixture", "brokerId": "0",
		"namesrvAddr": nameServer, "brokerIP1": "127.0.0.1", "brokerIP2": "127.0.0.1",
		"listenPort": strconv.Itoa(port), "haListenPort": strconv.Itoa(port + 1),
		"storePathRootDir": store, "storePathCommitLog": store + "/commitlog",
		"mappedFileSizeCommitLog": "16384", "mappedFileSizeConsumeQueue": "6000", "maxHashSlotNum": "64", "maxIndexNum": "256",
		"maxMessageSize": "8192", "transactionTimeOut": "2000", "transactionCheckInterval": "4000",
		"timerWheelEnable": "false", "autoCreateTopicEnable": "true", "defaultTopicQueueNums": "2",
	}
}

// WriteBrokerConf writes dir/broker.conf: SmallBroker's keys with set on top, and the store in dir/store.
func WriteBrokerConf(dir, nameServer string, port int, set map[string]string) (string, error) {
	keys := SmallBroker(dir+"/store", nameServer, port)
	maps.Copy(keys, set)
	return writeConf(dir, "broker.conf", keys)
}

func writeConf(dir, name string, keys map[string]string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("java peer: %w", err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(Properties(keys)), 0o600); err != nil {
		return "", fmt.Errorf("java peer: %w", err)
	}
	return path, nil
}
