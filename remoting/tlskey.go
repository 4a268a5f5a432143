package remoting

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/rc4"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"math/big"
	"os"
	"unicode/utf16"
)

// Private keys come as RocketMQ's guide to TLS makes them: PKCS#8 in PEM, encrypted with a password or not. Go's library
// reads the plain form only. Encrypted ones are read here in the forms that `openssl pkcs8 -topk8` writes: PBES2 (the
// default, RFC 8018) with AES or triple DES, and PBE-SHA1-RC4-128 and PBE-SHA1-3DES (RFC 7292), which that guide names.

// keyIterationsMax bounds the work that a key file can ask for.
const keyIterationsMax = 10_000_000

func loadKeyPair(certPath, keyPath, password string) (tls.Certificate, error) {
	certText, err := os.ReadFile(certPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyText, err := os.ReadFile(keyPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	block, _ := pem.Decode(keyText)
	if block == nil {
		return tls.Certificate{}, fmt.Errorf("%s holds no key in PEM form", keyPath)
	}
	if block.Type == "ENCRYPTED PRIVATE KEY" {
		der, err := decryptKey(block.Bytes, password)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("%s: %w", keyPath, err)
		}
		keyText = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	return tls.X509KeyPair(certText, keyText)
}

type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

type pbes2Params struct{ Derivation, Cipher pkix.AlgorithmIdentifier }

type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	KeyBytes   int                      `asn1:"optional"`
	Hash       pkix.AlgorithmIdentifier `asn1:"optional"`
}

type pkcs12Params struct {
	Salt       []byte
	Iterations int
}

const (
	oidPBES2     = "1.2.840.113549.1.5.13"
	oidPBKDF2    = "1.2.840.113549.1.5.12"
	oidRC4of128  = "1.2.840.113549.1.12.1.1"
	oid3DESofPKC = "1.2.840.113549.1.12.1.3"
	oid3DES      = "1.2.840.113549.3.7"
	oidAES128    = "2.16.840.1.101.3.4.1.2"
	oidAES192    = "2.16.840.1.101.3.4.1.22"
	oidAES256    = "2.16.840.1.101.3.4.1.42"
)

var keyHashes = map[string]func() hash.Hash{
	"":                    sha1.New, // PBKDF2's default
	"1.2.840.113549.2.7":  sha1.New,
	"1.2.840.113549.2.8":  sha256.New224,
	"1.2.840.113549.2.9":  sha256.New,
	"1.2.840.113549.2.10": sha512.New384,
	"1.2.840.113549.2.11": sha512.New,
}

var errKeyPassword = errors.New("the private key cannot be decrypted with the password given")

func decryptKey(der []byte, password string) ([]byte, error) {
	var key encryptedKey
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	var plain []byte
	var err error
	switch oid := key.Algorithm.Algorithm.String(); oid {
	case oidPBES2:
		plain, err = decryptPBES2(key, password)
	case oidRC4of128, oid3DESofPKC:
		plain, err = decryptPKCS12(key, password)
	default:
		err = fmt.Errorf("encrypted private key: method %s is not supported", oid)
	}
	if err != nil {
		return nil, err
	}
	if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
		return nil, errKeyPassword
	}
	return plain, nil
}

func decryptPBES2(key encryptedKey, password string) ([]byte, error) {
	var params pbes2Params
	var kdf pbkdf2Params
	var iv []byte
	if _, err := asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &params); err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	if oid := params.Derivation.Algorithm.String(); oid != oidPBKDF2 {
		return nil, fmt.Errorf("encrypted private key: derivation %s is not supported", oid)
	}
	if _, err := asn1.Unmarshal(params.Derivation.Parameters.FullBytes, &kdf); err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	if _, err := asn1.Unmarshal(params.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	hashName := ""
	if kdf.Hash.Algorithm != nil {
		hashName = kdf.Hash.Algorithm.String()
	}
	hashOf, known := keyHashes[hashName]
	if !known || kdf.Iterations < 1 || kdf.Iterations > keyIterationsMax {
		return nil, fmt.Errorf("encrypted private key: hash %s with %d iterations is not supported", hashName, kdf.Iterations)
	}
	size, newCipher := 0, aes.NewCipher
	switch oid := params.Cipher.Algorithm.String(); oid {
	case oidAES128:
		size = 16
	case oidAES192:
		size = 24
	case oidAES256:
		size = 32
	case oid3DES:
		size, newCipher = 24, des.NewTripleDESCipher
	default:
		return nil, fmt.Errorf("encrypted private key: cipher %s is not supported", oid)
	}
	derived, err := pbkdf2.Key(hashOf, password, kdf.Salt, kdf.Iterations, size)
	if err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	block, err := newCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	return decryptCBC(block, iv, key.Data)
}

func decryptCBC(block cipher.Block, iv, data []byte) ([]byte, error) {
	size := block.BlockSize()
	if len(iv) != size || len(data) == 0 || len(data)%size != 0 {
		return nil, errKeyPassword
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data)
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > size {
		return nil, errKeyPassword
	}
	return plain[:len(plain)-padding], nil
}

func decryptPKCS12(key encryptedKey, password string) ([]byte, error) {
	var params pkcs12Params
	if _, err := asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &params); err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	if params.Iterations < 1 || params.Iterations > keyIterationsMax || len(params.Salt) == 0 {
		return nil, fmt.Errorf("encrypted private key: %d iterations are not supported", params.Iterations)
	}
	const forKey, forIV = 1, 2
	if key.Algorithm.Algorithm.String() == oidRC4of128 {
		stream, err := rc4.NewCipher(pkcs12KDF(password, params, forKey, 16))
		if err != nil {
			return nil, fmt.Errorf("encrypted private key: %w", err)
		}
		plain := make([]byte, len(key.Data))
		stream.XORKeyStream(plain, key.Data)
		return plain, nil
	}
	block, err := des.NewTripleDESCipher(pkcs12KDF(password, params, forKey, 24))
	if err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	return decryptCBC(block, pkcs12KDF(password, params, forIV, block.BlockSize()), key.Data)
}

// pkcs12KDF derives size bytes as appendix B of RFC 7292 says, with SHA-1.
func pkcs12KDF(password string, params pkcs12Params, purpose byte, size int) []byte {
	const v = sha1.BlockSize
	var secret []byte // UTF-16, with a terminating zero
	for _, unit := range append(utf16.Encode([]rune(password)), 0) {
		secret = append(secret, byte(unit>>8), byte(unit))
	}
	input := append(repeatToBlock(params.Salt), repeatToBlock(secret)...)
	diversifier := repeatToBlock([]byte{purpose})
	var out []byte
	for len(out) < size {
		sum := sha1.Sum(append(append([]byte(nil), diversifier...), input...))
		for range params.Iterations - 1 {
			sum = sha1.Sum(sum[:])
		}
		out = append(out, sum[:]...)
		// Each block of the input, as a number, grows by the hash repeated to its length, plus one.
		step := new(big.Int).SetBytes(repeatToBlock(sum[:]))
		step.Add(step, big.NewInt(1))
		modulus := new(big.Int).Lsh(big.NewInt(1), 8*v)
		for at := 0; at < len(input); at += v {
			n := new(big.Int).SetBytes(input[at : at+v])
			n.Add(n, step).Mod(n, modulus).FillBytes(input[at : at+v])
		}
	}
	return out[:size]
}

// repeatToBlock repeats b to the next multiple of the hash's block.
func repeatToBlock(b []byte) []byte {
	const block = sha1.BlockSize
	out := make([]byte, (len(b)+block-1)/block*block)
	for i := range out {
		out[i] = b[i%len(b)]
	}
	return out
}
