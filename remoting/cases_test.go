package remoting_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/remoting"
)

// logged is written by the server and read by the test.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// issue writes a self-signed certificate of that serial number and its key, as a renewal does: file by file.
func issue(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	// Two renewals within the resolution of the file system's clock have other times all the same.
	stamp := time.Now().Add(time.Duration(serial) * time.Second)
	require.NoError(t, os.Chtimes(cert, stamp, stamp))
	require.NoError(t, os.Chtimes(key, stamp, stamp))
}

// Case 176: certificates and trust are renewed on both ends while a connection is in use. The connection goes on, the next
// handshake uses the new ones, and files that cannot be used leave the old ones in place, with an error in the log.
func TestCase176RenewedCertificatesAreUsed(t *testing.T) {
	dir := t.TempDir()
	serverCert, serverKey := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	clientCert, clientKey := filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	issue(t, serverCert, serverKey, 1)
	issue(t, clientCert, clientKey, 1)
	var out logged
	mode, err := settings(t, "tls.server.mode=enforcing", "tls.server.certPath="+serverCert, "tls.server.keyPath="+serverKey,
		"tls.server.need.client.auth=require", "tls.server.authClient=true", "tls.server.trustCertPath="+clientCert,
	).Server(slog.New(slog.NewTextHandler(&out, nil)))
	require.NoError(t, err)
	client, err := settings(t, "tls.enable=true", "tls.client.authServer=true", "tls.client.trustCertPath="+serverCert,
		"tls.client.certPath="+clientCert, "tls.client.keyPath="+clientKey).Client()
	require.NoError(t, err)
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{TLS: mode}), l)
	exchange := func(c *remoting.Client) {
		answer, err := c.Invoke(t.Context(), l.Addr().String(), request(codeEcho, "x"))
		require.NoError(t, err)
		require.Equal(t, "x", string(answer.Body))
	}
	serial := func() int64 {
		d := tls.Dialer{Config: client.Config}
		c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	old := newClient(t, remoting.ClientConfig{TLS: client})
	exchange(old)
	require.EqualValues(t, 1, serial())
	for n := int64(2); n < 5; n++ {
		issue(t, serverCert, serverKey, n)
		issue(t, clientCert, clientKey, n)
		require.Equal(t, n, serial())
		exchange(old)
		exchange(newClient(t, remoting.ClientConfig{TLS: client}))
	}
	require.NoError(t, os.WriteFile(serverKey, []byte("half a ke"), 0o600))
	require.EqualValues(t, 4, serial())
	exchange(newClient(t, remoting.ClientConfig{TLS: client}))
	require.Contains(t, out.String(), "renewed TLS files cannot be used")
}
