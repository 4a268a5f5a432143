package embed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorate/quorate/broker"
	"github.com/quorate/quorate/broker/advice"
	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/internal/javakeys"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/namesrv"
	"github.com/quorate/quorate/remoting"
)

// Bounds of a broker that keeps nothing: its log and how much of it a file has. Old files go when space gets short, as on
// a disk.
const (
	memoryBytesMax    = 1 << 30
	memoryLogFileSize = 64 << 20
)

func values(settings, origins map[string]string) conf.Values {
	v := conf.Values{}
	for key, text := range settings {
		origin := origins[key]
		if origin == "" {
			origin = "settings"
		}
		v.Set(key, text, origin)
	}
	return v
}

// bind binds settings and reports what of them does nothing.
func bind(v conf.Values, unused map[string]string, logger *slog.Logger, into ...any) error {
	report, err := conf.Bind(v, unused, into...)
	if err != nil {
		return fmt.Errorf("%w:\n%w", ErrConfig, err)
	}
	for _, f := range report.Unknown {
		logger.Warn("unknown configuration key", "key", f.Key, "origin", f.Origin, "did_you_mean", f.Hint)
	}
	for _, f := range report.Unused {
		logger.Warn("configuration key has no effect", "key", f.Key, "origin", f.Origin, "reason", f.Hint)
	}
	return nil
}

// config is the typed configuration of a NameServer. host "" is set by Start.
func (ns NameServer) config(host string, logger *slog.Logger) (namesrv.Config, remoting.TLSSettings, error) {
	c, tls := namesrv.DefaultConfig(), remoting.DefaultTLSSettings()
	if host != HostFromSettings {
		c.BindAddress, c.ListenPort = host, ns.Port
		c.KVConfigPath, c.ConfigStorePath = "", ""
		if ns.Dir != "" {
			c.KVConfigPath = filepath.Join(ns.Dir, "namesrv", "kvConfig.json")
			c.ConfigStorePath = filepath.Join(ns.Dir, "namesrv", "namesrv.properties")
		}
	}
	if err := bind(values(ns.Settings, ns.Origins), namesrvUnused(), logger, &c, &tls); err != nil {
		return c, tls, err
	}
	if err := c.Validate(); err != nil {
		return c, tls, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c, tls, nil
}

// PrintConfig writes the configuration that Start would use as `key=value` lines: all keys, or the important ones.
func (ns NameServer) PrintConfig(w io.Writer, important bool) error {
	c, tls, err := ns.config(HostFromSettings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return conf.Print(w, important, &c, &tls)
}

// config is the typed configuration of a broker that announces itself at nameServers, and at its own.
func (b Broker) config(host string, nameServers []string, logger *slog.Logger) (broker.Config, remoting.TLSSettings, error) {
	c, tls := broker.DefaultConfig(), remoting.DefaultTLSSettings()
	if host != HostFromSettings {
		c.Network.BindAddress, c.Identity.IP1, c.Identity.IP2 = host, host, host
	}
	c.Replication.AlwaysListen = host == HostFromSettings // as RocketMQ does
	if b.Port >= 0 {
		c.Network.ListenPort = b.Port
	}
	if b.Name != "" {
		c.Identity.Name = b.Name
	}
	if b.Dir != "" {
		c.Store.RootDir = b.Dir
	}
	if b.Memory {
		c.Store.FS, c.Store.CommitLogFileSize = vfs.NewMemory(memoryBytesMax), memoryLogFileSize
		if b.Dir == "" {
			c.Store.RootDir = "/memory"
		}
	}
	if err := bind(values(b.Settings, b.Origins), brokerUnused(), logger, &c, &tls); err != nil {
		return c, tls, err
	}
	if b.Memory {
		c.SyncFlush = false // there is no disk that an answer could speak of
	}
	c.Register.NameServers = slices.Concat(nameServers, b.NameServers, c.Register.NameServers)
	if err := c.Validate(); err != nil {
		return c, tls, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c, tls, nil
}

// PrintConfig writes the configuration that Start would use as `key=value` lines: all keys, or the important ones.
func (b Broker) PrintConfig(w io.Writer, important bool) error {
	c, tls, err := b.config(HostFromSettings, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return conf.Print(w, important, &c, &tls)
}

// Promise says in one line what an OK to a send will mean.
func (b Broker) Promise() (string, error) {
	c, _, err := b.config(HostFromSettings, nil, slog.New(slog.DiscardHandler))
	return c.Promise(), err
}

// Lint lists what is wrong with the settings: refused values as the error, keys without effect and replication keys that
// contradict each other as lines.
func (b Broker) Lint() ([]string, error) {
	c, tls := broker.DefaultConfig(), remoting.DefaultTLSSettings()
	report, err := conf.Bind(values(b.Settings, b.Origins), brokerUnused(), &c, &tls)
	if err != nil {
		return report.Messages(), fmt.Errorf("%w:\n%w", ErrConfig, err)
	}
	if err := c.Validate(); err != nil {
		return report.Messages(), fmt.Errorf("%w: %w", ErrConfig, err)
	}
	lines := report.Messages()
	for _, f := range c.Advice() {
		if f.Severity > advice.Note {
			lines = append(lines, fmt.Sprintf("%s: %s: %s; consider %s", f.Severity, f.Key, f.Text, strings.ReplaceAll(f.Remedy, "\n", " and ")))
		}
	}
	return lines, nil
}

// brokerUnused are keys without effect; what a field is bound to is not among them.
func brokerUnused() map[string]string {
	return javakeys.Broker()
}

func namesrvUnused() map[string]string {
	unused := javakeys.Namesrv()
	maps.Copy(unused, namesrv.UnusedKeys)
	return unused
}

// save keeps changed settings in the configuration file: lines of those keys are replaced where they stand, new ones are
// added at the end, everything else stays.
func (b Broker) save() func(map[string]string) error {
	if b.ConfigFile == "" {
		return nil
	}
	return func(changed map[string]string) error {
		text, err := os.ReadFile(b.ConfigFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return replaceFile(b.ConfigFile, conf.Edit(text, changed))
	}
}

// replaceFile puts content in place of the file, whole or not at all.
func replaceFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if info, statErr := os.Stat(path); statErr == nil {
		if err = os.Chmod(f.Name(), info.Mode().Perm()); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), path)
}

// Split takes the settings of a command line apart: words `namesrv.KEY=VALUE` are the NameServer's, others the broker's.
func Split(words []string) (brokerSettings, namesrvSettings map[string]string, err error) {
	brokerSettings, namesrvSettings = map[string]string{}, map[string]string{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return nil, nil, fmt.Errorf("%w: %q is not key=value", ErrConfig, word)
		}
		if rest, isNamesrv := strings.CutPrefix(key, "namesrv."); isNamesrv {
			namesrvSettings[rest] = value
		} else {
			brokerSettings[key] = value
		}
	}
	return brokerSettings, namesrvSettings, nil
}
