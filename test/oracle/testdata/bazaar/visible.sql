-- What the staff of shop 2 may see, written without a look at the policy's SQL.
CREATE TEMP TABLE agreed AS SELECT id FROM users WHERE ai_consent = 'granted';
CREATE TEMP TABLE kept_product AS SELECT id FROM products WHERE shop_id = 2 AND discarded_at IS NULL;
CREATE TEMP TABLE kept_variant AS SELECT id FROM variants WHERE product_id IN (SELECT id FROM kept_product);
CREATE TEMP TABLE kept_order AS SELECT id FROM orders WHERE shop_id = 2 AND status <> 'cart' AND (user_id IS NULL OR user_id IN (SELECT id FROM agreed));
CREATE TEMP TABLE kept_user AS SELECT id FROM users WHERE id IN (SELECT id FROM agreed) AND (id = md5('user 3')::uuid OR id IN (SELECT user_id FROM orders WHERE id IN (SELECT id FROM kept_order)) OR id IN (SELECT user_id FROM memberships WHERE shop_id = 2));
CREATE TEMP TABLE kept_review AS SELECT id FROM reviews WHERE product_id IN (SELECT id FROM kept_product) AND state = 'visible' AND user_id IN (SELECT id FROM agreed);
CREATE TEMP TABLE kept_comment AS SELECT id FROM comments WHERE NOT internal AND (commentable_type = 'Product' AND commentable_id IN (SELECT id FROM kept_product) OR commentable_type = 'Order' AND commentable_id IN (SELECT id FROM kept_order)
  OR commentable_type = 'Review' AND commentable_id IN (SELECT id FROM kept_review));
CREATE TEMP TABLE kept_conversation AS SELECT id FROM conversations WHERE shop_id = 2 AND buyer_id IN (SELECT id FROM agreed) AND state IS NOT NULL AND state <> 'spam';
