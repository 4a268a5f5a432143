package remoting

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"time"
)

// TLSMode says how a port treats TLS (RocketMQ TlsSystemConfig). A nil mode is disabled: a handshake is refused.
type TLSMode struct {
	Config    *tls.Config
	Enforcing bool // plaintext is refused
}

// TLSSettings have the names and defaults of RocketMQ's TlsSystemConfig; its tag names each key for internal/conf. The
// file that tls.config.file names is read by whoever binds them.
//
// Two rules are stricter than RocketMQ's. A certificate that is given is used although tls.test.mode.enable defaults to
// true, where RocketMQ ignores it until the test mode is switched off. And a peer is verified when authClient or authServer
// says so, test mode or not.
type TLSSettings struct {
	ServerMode           string `conf:"tls.server.mode" enum:"disabled|permissive|enforcing"`
	ServerNeedClientAuth string `conf:"tls.server.need.client.auth" enum:"none|optional|require"`
	ServerKeyPath        string `conf:"tls.server.keyPath"`
	ServerKeyPassword    string `conf:"tls.server.keyPassword,secret"`
	ServerCertPath       string `conf:"tls.server.certPath"`
	ServerAuthClient     bool   `conf:"tls.server.authClient"`
	ServerTrustCertPath  string `conf:"tls.server.trustCertPath"`
	ClientEnable         bool   `conf:"tls.enable"` // connections of ours use TLS
	ClientKeyPath        string `conf:"tls.client.keyPath"`
	ClientKeyPassword    string `conf:"tls.client.keyPassword,secret"`
	ClientCertPath       string `conf:"tls.client.certPath"`
	ClientAuthServer     bool   `conf:"tls.client.authServer"`
	ClientTrustCertPath  string `conf:"tls.client.trustCertPath"`
	TestModeEnable       bool   `conf:"tls.test.mode.enable"`
	Ciphers              string `conf:"tls.ciphers"`   // names of cipher suites of TLS 1.2, separated by commas; empty: Go's choice
	Protocols            string `conf:"tls.protocols"` // of TLSv1.2, TLSv1.3, separated by commas; empty: both
}

// DefaultTLSSettings returns RocketMQ's defaults: plaintext and TLS are both accepted.
func DefaultTLSSettings() TLSSettings {
	return TLSSettings{ServerMode: "permissive", ServerNeedClientAuth: "none", TestModeEnable: true}
}

// Server returns the mode of a listening port, nil when TLS is disabled. Files that are renewed are used from the next
// handshake on; connections that there are go on. Without a certificate, permissive makes a
// self-signed one and says so; enforcing is an error.
func (s TLSSettings) Server(logger *slog.Logger) (*TLSMode, error) {
	if s.ServerMode == "disabled" {
		return nil, nil
	}
	if s.ServerMode != "permissive" && s.ServerMode != "enforcing" {
		return nil, fmt.Errorf("tls.server.mode: %q is none of disabled, permissive, enforcing", s.ServerMode)
	}
	files, err := watch(func() (*tls.Config, error) { return s.server(logger) }, func(err error) {
		logger.Error("renewed TLS files cannot be used", "error", err)
	}, s.ServerCertPath, s.ServerKeyPath, s.ServerTrustCertPath)
	if err != nil {
		return nil, err
	}
	config := files.get().Clone()
	if len(files.paths) > 0 {
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return files.get(), nil }
	}
	return &TLSMode{Config: config, Enforcing: s.ServerMode == "enforcing"}, nil
}

// server reads what a port needs.
func (s TLSSettings) server(logger *slog.Logger) (*tls.Config, error) {
	config, err := s.base()
	if err != nil {
		return nil, err
	}
	enforcing := s.ServerMode == "enforcing"
	switch {
	case s.ServerCertPath != "" || s.ServerKeyPath != "":
		cert, err := loadKeyPair(s.ServerCertPath, s.ServerKeyPath, s.ServerKeyPassword)
		if err != nil {
			return nil, fmt.Errorf("tls.server.certPath, tls.server.keyPath: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
	case enforcing:
		return nil, errors.New("tls.server.mode=enforcing needs tls.server.certPath and tls.server.keyPath")
	default:
		cert, err := selfSigned(time.Now())
		if err != nil {
			return nil, fmt.Errorf("make a self-signed certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
		logger.Info("TLS uses a self-signed certificate made now, since tls.server.certPath is not set")
	}
	if config.ClientAuth, err = s.clientAuth(); err != nil {
		return nil, err
	}
	if s.ServerTrustCertPath != "" {
		if config.ClientCAs, err = loadPool(s.ServerTrustCertPath); err != nil {
			return nil, fmt.Errorf("tls.server.trustCertPath: %w", err)
		}
	}
	return config, nil
}

func (s TLSSettings) clientAuth() (tls.ClientAuthType, error) {
	switch {
	case s.ServerNeedClientAuth == "none":
		return tls.NoClientCert, nil
	case s.ServerNeedClientAuth == "optional" && s.ServerAuthClient:
		return tls.VerifyClientCertIfGiven, nil
	case s.ServerNeedClientAuth == "optional":
		return tls.RequestClientCert, nil
	case s.ServerNeedClientAuth == "require" && s.ServerAuthClient:
		return tls.RequireAndVerifyClientCert, nil
	case s.ServerNeedClientAuth == "require":
		return tls.RequireAnyClientCert, nil
	}
	return 0, fmt.Errorf("tls.server.need.client.auth: %q is none of none, optional, require", s.ServerNeedClientAuth)
}

// Client returns what connections of ours use, nil for plaintext. The server's certificate is verified when
// tls.client.authServer is set, its host name never is, as in RocketMQ: routes carry addresses, not names.
func (s TLSSettings) Client() (*ClientTLS, error) {
	if !s.ClientEnable {
		return nil, nil
	}
	config, err := s.base()
	if err != nil {
		return nil, err
	}
	config.InsecureSkipVerify = true // the chain is verified below
	if s.ClientAuthServer {
		roots, err := watch(func() (*x509.CertPool, error) {
			if s.ClientTrustCertPath == "" {
				return nil, nil // those of the system
			}
			return loadPool(s.ClientTrustCertPath)
		}, nil, s.ClientTrustCertPath)
		if err != nil {
			return nil, fmt.Errorf("tls.client.trustCertPath: %w", err)
		}
		config.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, roots.get()) }
	}
	if s.ClientCertPath != "" || s.ClientKeyPath != "" {
		own, err := watch(func() (*tls.Certificate, error) {
			cert, err := loadKeyPair(s.ClientCertPath, s.ClientKeyPath, s.ClientKeyPassword)
			return &cert, err
		}, nil, s.ClientCertPath, s.ClientKeyPath)
		if err != nil {
			return nil, fmt.Errorf("tls.client.certPath, tls.client.keyPath: %w", err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.get(), nil }
	}
	return &ClientTLS{Config: config}, nil
}

func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server has no certificate")
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(options)
	return err
}

// base holds what both sides share: TLS 1.2 or later, whatever the settings say.
func (s TLSSettings) base() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Protocols != "" {
		has := map[string]bool{}
		for name := range strings.SplitSeq(s.Protocols, ",") {
			has[strings.ToLower(strings.TrimSpace(name))] = true
		}
		switch old, recent := has["tlsv1.2"], has["tlsv1.3"]; {
		case recent && !old:
			config.MinVersion = tls.VersionTLS13
		case old && !recent:
			config.MaxVersion = tls.VersionTLS12
		case !old && !recent:
			return nil, fmt.Errorf("tls.protocols: %q names neither TLSv1.2 nor TLSv1.3", s.Protocols)
		}
	}
	if s.Ciphers != "" {
		byName := map[string]uint16{}
		for _, suite := range tls.CipherSuites() {
			byName[suite.Name] = suite.ID
		}
		for name := range strings.SplitSeq(s.Ciphers, ",") {
			id, known := byName[strings.TrimSpace(name)]
			if !known {
				return nil, fmt.Errorf("tls.ciphers: %q is unknown or insecure", strings.TrimSpace(name))
			}
			config.CipherSuites = append(config.CipherSuites, id)
		}
	}
	return config, nil
}

func loadPool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	return pool, nil
}

// selfSignedValidity is long: the certificate lives as long as the process that made it.
const selfSignedValidity = 10 * 365 * 24 * time.Hour

// selfSigned makes a certificate that proves nothing and encrypts all the same.
func selfSigned(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "quorate self-signed"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(selfSignedValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
