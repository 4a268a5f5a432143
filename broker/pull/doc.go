// Package pull answers the requests that read messages and offsets: pull with its hold, view, query, and the offset
// searches. A held pull is one goroutine waiting for its queue's watermark.
package pull
