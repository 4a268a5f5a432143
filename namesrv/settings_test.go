package namesrv_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/namesrv"
	"github.com/quorate/quorate/protocol"
)

func TestConfigurationIsChangedAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		require.NoError(t, disk.MkdirAll("/ns"))
		require.NoError(t, vfs.WriteFile(disk, "/ns/namesrv.properties", []byte("# mine\nlistenPort=9876\nenableTopicList = true\n")))
		w := start(t, func(c *namesrv.Config) { c.FS, c.ConfigStorePath = disk, "/ns/namesrv.properties" })
		defer w.end()
		p := w.peer("admin")
		defer p.close()
		p.ok(&protocol.UpdateNameServerConfigRequest{}, []byte("enableTopicList=false\nscanNotActiveBrokerInterval=1000\n"), nil)
		require.Equal(t, protocol.SystemError, protocol.ResponseCode(p.call(&protocol.GetTopicsByClusterRequest{Cluster: "c"}, nil).Code))
		content, err := vfs.ReadFile(disk, "/ns/namesrv.properties")
		require.NoError(t, err)
		require.Equal(t, "# mine\nlistenPort=9876\nenableTopicList=false\nscanNotActiveBrokerInterval=1000\n", string(content))

		text := string(p.ok(&protocol.GetNameServerConfigRequest{}, nil, nil).Body)
		for _, line := range []string{"enableTopicList=false\n", "scanNotActiveBrokerInterval=1000\n", "listenPort=9876\n", "supportActingMaster=false\n"} {
			require.Contains(t, text, line)
		}

		h, b := registration(0, "T", "U")
		*h.HeartbeatTimeoutMillis = 500
		p.registerOK(h, b)
		time.Sleep(2 * time.Second) // the shorter interval holds at once
		require.Nil(t, p.route("T"))
	})
}

// Part of cases 161 and 162: what is not on the list cannot be changed, whatever the value.
func TestCase162OnlyTheAllowListChangesAndOnlyWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		w := start(t, func(c *namesrv.Config) { c.FS, c.ConfigStorePath = disk, "/ns/namesrv.properties" })
		defer w.end()
		p := w.peer("stranger")
		defer p.close()
		update := func(text string) protocol.ResponseCode {
			return protocol.ResponseCode(p.call(&protocol.UpdateNameServerConfigRequest{}, []byte(text)).Code)
		}
		before := string(p.ok(&protocol.GetNameServerConfigRequest{}, nil, nil).Body)

		allowed := map[string]bool{}
		for _, f := range conf.Fields(&namesrv.Reloadable{}) {
			allowed[f.Key] = true
		}
		require.NotContains(t, allowed, "kvConfigPath")
		cfg := namesrv.DefaultConfig()
		var fixed []string
		for _, f := range conf.Fields(&cfg) {
			if !allowed[f.Key] {
				fixed = append(fixed, f.Key)
			}
		}
		for key := range namesrv.UnusedKeys {
			fixed = append(fixed, key)
		}
		for _, key := range fixed {
			for _, value := range []string{"1", "/etc/passwd", "`reboot`;$(reboot)|x", ""} {
				require.Equal(t, protocol.NoPermission, update(key+"="+value), key)
			}
		}
		for text, code := range map[string]protocol.ResponseCode{
			"unknownKey=1":                                           protocol.InvalidParameter,
			"scanNotActiveBrokerInterval=1":                          protocol.InvalidParameter,
			"scanNotActiveBrokerInterval=-1":                         protocol.InvalidParameter,
			"scanNotActiveBrokerInterval=fast":                       protocol.InvalidParameter,
			"waitSecondsForService=99999999":                         protocol.InvalidParameter,
			"enableTopicList=`reboot`":                               protocol.InvalidParameter,
			"enableTopicList=false\nkvConfigPath=/tmp/x":             protocol.NoPermission,
			"enableTopicList=false\nscanNotActiveBrokerInterval=abc": protocol.InvalidParameter,
			strings.Repeat("#", 70<<10):                              protocol.InvalidParameter,
			"":                                                       protocol.Success,
		} {
			require.Equal(t, code, update(text), "%.60q", text)
		}
		require.Equal(t, before, string(p.ok(&protocol.GetNameServerConfigRequest{}, nil, nil).Body), "all or nothing, and here nothing")
		_, err := disk.Stat("/ns/namesrv.properties")
		require.Error(t, err)
	})
}

func TestConfigurationOfTheProductIsUnderstood(t *testing.T) {
	cfg := namesrv.DefaultConfig()
	values, err := conf.ReadFile("testdata/namesrv-defaults.properties")
	require.NoError(t, err)
	report, err := conf.Bind(values, namesrv.UnusedKeys, &cfg)
	require.NoError(t, err)
	require.Empty(t, report.Unknown)
	require.Equal(t, namesrv.DefaultConfig(), cfg, "the defaults are the product's")
	require.NoError(t, cfg.Validate())

	cfg.KVConfigPath = cfg.ConfigStorePath
	require.Error(t, cfg.Validate())
}
