SELECT 'shops', count(*), sum(hashtextextended(x::text, 0)) FROM shops x WHERE id <> 2
UNION ALL SELECT 'memberships', count(*), sum(hashtextextended(x::text, 0)) FROM memberships x
UNION ALL SELECT 'products', count(*), sum(hashtextextended(x::text, 0)) FROM products x WHERE id NOT IN (SELECT id FROM kept_product) AND (shop_id <> 2 OR discarded_at IS NOT NULL)
UNION ALL SELECT 'variants', count(*), sum(hashtextextended(x::text, 0)) FROM variants x WHERE id NOT IN (SELECT id FROM kept_variant) AND product_id NOT IN (SELECT id FROM kept_product)
UNION ALL SELECT 'orders', count(*), sum(hashtextextended(x::text, 0)) FROM orders x WHERE id NOT IN (SELECT id FROM kept_order)
UNION ALL SELECT 'secrets', count(*), sum(hashtextextended(concat(token, payload), 0)) FROM orders x
UNION ALL SELECT 'users', count(*), sum(hashtextextended(x::text, 0)) FROM users x
UNION ALL SELECT 'order_items', count(*), sum(hashtextextended(x::text, 0)) FROM order_items x
UNION ALL SELECT 'payments', count(*), sum(hashtextextended(x::text, 0)) FROM payments x
UNION ALL SELECT 'reviews', count(*), sum(hashtextextended(x::text, 0)) FROM reviews x WHERE id NOT IN (SELECT id FROM kept_review)
UNION ALL SELECT 'comments', count(*), sum(hashtextextended(x::text, 0)) FROM comments x WHERE id NOT IN (SELECT id FROM kept_comment) AND id < 1000
UNION ALL SELECT 'addresses', count(*), sum(hashtextextended(x::text, 0)) FROM addresses x
UNION ALL SELECT 'favorites', count(*), sum(hashtextextended(x::text, 0)) FROM favorites x
UNION ALL SELECT 'conversations', count(*), sum(hashtextextended(x::text, 0)) FROM conversations x WHERE id NOT IN (SELECT id FROM kept_conversation)
UNION ALL SELECT 'messages', count(*), sum(hashtextextended(x::text, 0)) FROM messages x WHERE conversation_id NOT IN (SELECT id FROM kept_conversation)
UNION ALL SELECT 'coupons', count(*), sum(hashtextextended(x::text, 0)) FROM coupons x
UNION ALL SELECT 'inventory_events', count(*), sum(hashtextextended(x::text, 0)) FROM inventory_events x
UNION ALL SELECT 'notifications', count(*), sum(hashtextextended(x::text, 0)) FROM notifications x WHERE user_id <> md5('user 3')::uuid
