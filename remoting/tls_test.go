package remoting_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

var quiet = slog.New(slog.DiscardHandler)

const (
	certPath = "testdata/tls/cert.pem"
	keyPath  = "testdata/tls/plain.key"
)

// settings binds keys over the defaults as a command does.
func settings(t *testing.T, pairs ...string) remoting.TLSSettings {
	t.Helper()
	s, v := remoting.DefaultTLSSettings(), conf.Values{}
	for _, p := range pairs {
		require.NoError(t, v.Assign(p, "test"))
	}
	report, err := conf.Bind(v, nil, &s)
	require.NoError(t, err)
	require.Empty(t, report.Messages())
	return s
}

// exchangeOver starts a server and a client with their settings and sends one request.
func exchangeOver(t *testing.T, server, client remoting.TLSSettings) error {
	t.Helper()
	mode, err := server.Server(quiet)
	require.NoError(t, err)
	clientTLS, err := client.Client()
	require.NoError(t, err)
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{TLS: mode}), l)
	c := newClient(t, remoting.ClientConfig{TLS: clientTLS})
	big := strings.Repeat("0123456789", 200_000)
	for range 3 {
		answer, err := c.Invoke(t.Context(), l.Addr().String(), request(codeEcho, big))
		if err != nil {
			return err
		}
		require.Equal(t, big, string(answer.Body))
	}
	return nil
}

func TestTLSModes(t *testing.T) {
	plain, enabled := settings(t), settings(t, "tls.enable=true")
	ours := []string{"tls.server.certPath=" + certPath, "tls.server.keyPath=" + keyPath}
	for name, tc := range map[string]struct {
		server, client remoting.TLSSettings
		works          bool
	}{
		"permissive, plaintext":   {plain, plain, true},
		"permissive, TLS":         {plain, enabled, true},
		"disabled, plaintext":     {settings(t, "tls.server.mode=disabled"), plain, true},
		"disabled, TLS":           {settings(t, "tls.server.mode=disabled"), enabled, false},
		"enforcing, plaintext":    {settings(t, append(ours, "tls.server.mode=enforcing")...), plain, false},
		"enforcing, TLS":          {settings(t, append(ours, "tls.server.mode=enforcing")...), enabled, true},
		"verified server":         {settings(t, ours...), settings(t, "tls.enable=true", "tls.client.authServer=true", "tls.client.trustCertPath="+certPath), true},
		"unknown server":          {plain, settings(t, "tls.enable=true", "tls.client.authServer=true", "tls.client.trustCertPath="+certPath), false},
		"client without its own":  {settings(t, "tls.server.need.client.auth=require"), enabled, false},
		"client with any":         {settings(t, "tls.server.need.client.auth=require"), settings(t, "tls.enable=true", "tls.client.certPath="+certPath, "tls.client.keyPath="+keyPath), true},
		"client with a trusted":   {settings(t, "tls.server.need.client.auth=require", "tls.server.authClient=true", "tls.server.trustCertPath="+certPath), settings(t, "tls.enable=true", "tls.client.certPath="+certPath, "tls.client.keyPath="+keyPath), true},
		"optional, without":       {settings(t, "tls.server.need.client.auth=optional", "tls.server.authClient=true"), enabled, true},
		"TLS 1.2 only":            {settings(t, "tls.protocols=TLSv1.2", "tls.ciphers=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"), enabled, true},
		"no version in common":    {settings(t, "tls.protocols=TLSv1.2"), settings(t, "tls.enable=true", "tls.protocols=TLSv1.3"), false},
		"encrypted key, RC4":      {settings(t, "tls.server.certPath="+certPath, "tls.server.keyPath=testdata/tls/pkcs12-rc4.key", "tls.server.keyPassword=s3cret"), enabled, true},
		"encrypted key of client": {plain, settings(t, "tls.enable=true", "tls.client.certPath="+certPath, "tls.client.keyPath=testdata/tls/pbes2-3des-sha1.key", "tls.client.keyPassword=s3cret"), true},
	} {
		t.Run(name, func(t *testing.T) {
			err := exchangeOver(t, tc.server, tc.client)
			require.Equal(t, tc.works, err == nil, "%v", err)
		})
	}
}

func TestEncryptedKeysAreRead(t *testing.T) {
	keys, err := filepath.Glob("testdata/tls/p*-*.key")
	require.NoError(t, err)
	require.Len(t, keys, 5)
	for _, key := range keys {
		s := settings(t, "tls.server.certPath="+certPath, "tls.server.keyPath="+key, "tls.server.keyPassword=s3cret")
		_, err := s.Server(quiet)
		require.NoError(t, err, key)
		s.ServerKeyPassword = "wrong"
		_, err = s.Server(quiet)
		require.ErrorContains(t, err, "cannot be decrypted", key)
	}
}

func TestWrongTLSSettingsAreRefusedByName(t *testing.T) {
	for _, tc := range []struct{ set, want string }{
		{"tls.server.mode=enforcing", "needs tls.server.certPath"},
		{"tls.server.certPath=missing.pem", "tls.server.certPath"},
		{"tls.server.trustCertPath=testdata/tls/plain.key", "tls.server.trustCertPath"},
		{"tls.protocols=SSLv3", "tls.protocols"},
		{"tls.ciphers=TLS_RSA_WITH_NULL", "tls.ciphers"},
	} {
		_, err := settings(t, tc.set).Server(quiet)
		require.ErrorContains(t, err, tc.want)
	}
	_, err := remoting.TLSSettings{ServerMode: "maybe"}.Server(quiet)
	require.ErrorContains(t, err, "tls.server.mode")
	_, err = settings(t, "tls.enable=true", "tls.client.trustCertPath=missing.pem", "tls.client.authServer=true").Client()
	require.ErrorContains(t, err, "tls.client.trustCertPath")
	none, err := settings(t).Client()
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestTLSBehindAProxyHeader(t *testing.T) {
	mode, err := settings(t).Server(quiet)
	require.NoError(t, err)
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{TLS: mode}), l)
	c := newClient(t, remoting.ClientConfig{
		TLS: &remoting.ClientTLS{Config: &tls.Config{InsecureSkipVerify: true}},
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			nc, err := d.DialContext(ctx, "tcp", addr)
			if err == nil {
				_, err = nc.Write([]byte("PROXY TCP4 192.0.2.7 198.51.100.1 5678 10911\r\n"))
			}
			return nc, err
		},
	})
	answered := make(chan error, 1)
	go func() {
		_, err := c.Invoke(context.Background(), l.Addr().String(), request(codeLater, ""))
		answered <- err
	}()
	x := <-f.later
	require.Equal(t, "192.0.2.7:5678", x.Conn.RemoteAddr().String())
	x.Respond(&remoting.Reply{Code: protocol.Success})
	require.NoError(t, <-answered)
}
