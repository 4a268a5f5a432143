package remoting

import "crypto/tls"

// TLSMode says how a port treats TLS (RocketMQ TlsSystemConfig).
type TLSMode struct {
	Config    *tls.Config
	Enforcing bool // plaintext is refused
}
